#!/usr/bin/env node
// The `tocsin` command. Under an older Node it installs the dependencies and runs the pinned one.
import { spawn } from "node:child_process";
import { ensureInstalled, isInstalled, pinnedNode, root } from "./install.mjs";

if (Number(process.versions.node.split(".")[0]) >= 26 && isInstalled()) {
  await import("../src/main.mjs");
} else {
  try {
    await ensureInstalled();
  } catch (error) {
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
  const child = spawn(pinnedNode, [`${root}src/main.mjs`, ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 143)));
}
