import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// What takes a minute or more starts first, so that no process is left alone with it at the end. A checkout that has never run
// the tests knows nothing but the sizes of files, and those that walk through every state are among the smallest.

const SLOWEST = [
  /^test\/console\/(rules|faults|accessible|views|alerts)\.e2e\.test\.ts$/,
  /^test\/(start|command-line)\.test\.ts$/,
  /^test\/console\/.*\.e2e\.test\.ts$/,
  /^test\/cluster\//,
  /^src\/store\/(embedded|postgres)\/.*\.test\.ts$/,
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification) => {
      const path = relative(this.ctx.config.root, moduleId);
      const rank = SLOWEST.findIndex((pattern) => pattern.test(path));
      return rank < 0 ? SLOWEST.length : rank;
    };
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
