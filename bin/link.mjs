// After an install, links the command into node_modules/.bin, so that `npx tocsin` finds it.
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../node_modules/.bin/", import.meta.url));
mkdirSync(folder, { recursive: true });
rmSync(`${folder}tocsin`, { force: true });
symlinkSync("../../bin/tocsin.mjs", `${folder}tocsin`);
