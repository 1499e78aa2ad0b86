import { readFileSync } from "node:fs";

// Files that settings name, such as certificates and passwords.

/** A setting that names a file which cannot be read. The message is for the operator. */
export class UnreadableSettingFile extends Error {
  readonly setting: string;
  readonly fault: string;
  constructor(setting: string, path: string, cause: unknown) {
    const fault = `the file ${path} cannot be read (${(cause as NodeJS.ErrnoException).code})`;
    super(`${setting}: ${fault}.`, { cause });
    this.name = "UnreadableSettingFile";
    this.setting = setting;
    this.fault = fault;
  }
}

export function readSettingFile(setting: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UnreadableSettingFile(setting, path, error);
  }
}

/** The faults of the files that `read` reads. */
export function settingFileFaults(read: () => unknown): UnreadableSettingFile[] {
  try {
    read();
    return [];
  } catch (error) {
    if (error instanceof UnreadableSettingFile) return [error];
    throw error;
  }
}
