import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

// Credentials for AWS as its tools find them: in variables, or in the file with profiles. The file is read for each signature
// period, so that whatever rotates it is heeded.

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  /** The signer asks again after this time. */
  readonly expiration: Date;
}

const VALID_MS = 60_000;

export function readAwsCredentials(environment: Readonly<Record<string, string | undefined>>): AwsCredentials {
  const found =
    environment["AWS_ACCESS_KEY_ID"] === undefined
      ? readProfile(environment)
      : {
          aws_access_key_id: environment["AWS_ACCESS_KEY_ID"],
          aws_secret_access_key: environment["AWS_SECRET_ACCESS_KEY"],
          aws_session_token: environment["AWS_SESSION_TOKEN"],
        };
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey, aws_session_token: token } = found;
  if (!accessKeyId || !secretAccessKey) throw new Error("there are no AWS credentials in variables or in the profile");
  return {
    accessKeyId,
    secretAccessKey,
    ...(token && { sessionToken: token }),
    expiration: new Date(Date.now() + VALID_MS),
  };
}

function readProfile(environment: Readonly<Record<string, string | undefined>>): Record<string, string | undefined> {
  const file = environment["AWS_SHARED_CREDENTIALS_FILE"] ?? join(homedir(), ".aws", "credentials");
  const wanted = environment["AWS_PROFILE"] ?? "default";
  const values: Record<string, string> = {};
  let profile = "";
  for (const line of readFileSync(file, "utf8").split(/\r?\n/)) {
    const heading = /^\s*\[\s*(.+?)\s*\]/.exec(line);
    if (heading) profile = heading[1]!;
    const entry = /^\s*([a-z_]+)\s*=\s*(\S+)\s*$/.exec(line);
    if (entry && profile === wanted) values[entry[1]!] = entry[2]!;
  }
  return values;
}
