import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Skipped, type Command } from "./command.ts";

// How the client of each language is generated. Versions are next to each program: package.json, requirements.txt, go.mod.

const modules = fileURLToPath(new URL("../../node_modules/", import.meta.url));

interface Workplace {
  readonly folder: string;
  readonly run: (command: Command) => Promise<string>;
}

/** Each step returns a short text for the report. */
export interface Language {
  readonly name: string;
  /** Next to this file, and in the temporary folder. */
  readonly folder: string;
  readonly files: readonly string[];
  install(workplace: Workplace): Promise<string>;
  generate(workplace: Workplace): Promise<string>;
  compile(workplace: Workplace): Promise<string>;
  use(workplace: Workplace, onLine: (line: string) => void): Promise<unknown>;
}

const TYPESCRIPT_OPTIONS = {
  target: "esnext",
  module: "nodenext",
  lib: ["esnext", "dom", "dom.iterable"],
  types: ["node"],
  typeRoots: [join(modules, "@types")],
  strict: true,
  noEmit: true,
  verbatimModuleSyntax: true,
  erasableSyntaxOnly: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
};

const typescript: Language = {
  name: "TypeScript",
  folder: "typescript",
  files: ["package.json", "package-lock.json", "client.ts"],
  async install({ run }) {
    const options = ["--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1", "--fetch-timeout=60000"];
    await run({ command: "npm", args: ["ci", ...options], fetchesWith: "npm" });
    return "openapi-typescript and openapi-fetch";
  },
  async generate({ run }) {
    // As TypeScript, because declarations would not be checked. Properties with a default may be left out of a request.
    await run({
      command: "node_modules/.bin/openapi-typescript",
      args: ["openapi.json", "--default-non-nullable=false", "--output", "api.ts"],
    });
    return "api.ts";
  },
  async compile({ folder, run }) {
    const settings = { compilerOptions: TYPESCRIPT_OPTIONS, files: ["client.ts", "api.ts"] };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(settings));
    await run({ command: join(modules, ".bin", "tsc"), args: ["--project", "tsconfig.json"] });
    return "tsc finds no fault";
  },
  use: ({ run }, onLine) => run({ command: process.execPath, args: ["client.ts"], onLine }),
};

const PYTHON_MINOR_MIN = 10;
const python3 = "venv/bin/python3";

const python: Language = {
  name: "Python",
  folder: "python",
  files: ["requirements.txt", "client.py"],
  async install({ run }) {
    const version = (await run({ command: "python3", args: ["-c", "import sys; print(sys.version_info[1])"] })).trim();
    if (Number(version) < PYTHON_MINOR_MIN) {
      throw new Skipped(`needs Python 3.${PYTHON_MINOR_MIN} or newer, and python3 is 3.${version}`);
    }
    await run({ command: "python3", args: ["-m", "venv", "venv"] }).catch((error: Error) => {
      throw /ensurepip/.test(error.message) ? new Skipped("python3 is installed without venv") : error;
    });
    const options = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--no-deps"];
    await run({
      command: python3,
      args: ["-m", "pip", "install", ...options, "-r", "requirements.txt"],
      fetchesWith: "pip",
    });
    return `openapi-python-client, for Python 3.${version}`;
  },
  async generate({ folder, run }) {
    // Formatting the output would require another program on the path.
    await writeFile(join(folder, "config.yaml"), "post_hooks: []\n");
    const args = ["--path", "openapi.json", "--config", "config.yaml", "--meta", "none", "--output-path"];
    const output = await run({
      command: "venv/bin/openapi-python-client",
      args: ["generate", ...args, "tocsin_client"],
    });
    // The generator skips schemas that it does not understand and goes on.
    const missing = output.split("\n").filter((line) => /will not be generated|Unable to process/.test(line));
    if (missing.length > 0) throw new Error(`left out:\n${missing.join("\n")}\n${output}`);
    const types = new Set([...output.matchAll(/Unsupported content type (\S+)/g)].map(([, type]) => type));
    return `tocsin_client${types.size > 0 ? `, without bodies of ${[...types].join(", ")}` : ""}`;
  },
  async compile({ run }) {
    const everything =
      "import importlib, pkgutil, tocsin_client as top\n" +
      "names = [module.name for module in pkgutil.walk_packages(top.__path__, 'tocsin_client.')]\n" +
      "[importlib.import_module(name) for name in names]\n" +
      "print(len(names))";
    return `${(await run({ command: python3, args: ["-W", "error", "-c", everything] })).trim()} modules imported`;
  },
  use: ({ run }, onLine) => run({ command: python3, args: ["client.py"], onLine }),
};

const go: Language = {
  name: "Go",
  folder: "go",
  files: ["go.mod", "go.sum", "main.go"],
  async install({ run }) {
    const version = (await run({ command: "go", args: ["env", "GOVERSION"] })).trim();
    await run({ command: "go", args: ["mod", "download"], fetchesWith: "go" }).catch((error: Error) => {
      const needed = /requires go >= [^;)]+/.exec(error.message);
      throw needed ? new Skipped(`its go.mod ${needed[0]})`) : error;
    });
    return `oapi-codegen, for ${version}`;
  },
  async generate({ run }) {
    const args = ["-generate", "types,client", "-package", "tocsin", "-o", "tocsin/client.go", "openapi.json"];
    await run({ command: "mkdir", args: ["tocsin"] });
    await run({ command: "go", args: ["tool", "oapi-codegen", ...args] });
    return "tocsin/client.go";
  },
  async compile({ run }) {
    await run({ command: "go", args: ["build", "-o", "client", "."] });
    await run({ command: "go", args: ["vet", "./..."] });
    return "go build and go vet find no fault";
  },
  use: ({ run }, onLine) => run({ command: "./client", args: [], onLine }),
};

export const LANGUAGES: readonly Language[] = [typescript, python, go];
