// After an install, puts the command itself beside those of its dependencies, so that `npx tocsin` finds it.
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../node_modules/.bin/", import.meta.url));
mkdirSync(folder, { recursive: true });
rmSync(`${folder}tocsin`, { force: true });
symlinkSync("../../bin/tocsin.mjs", `${folder}tocsin`);
