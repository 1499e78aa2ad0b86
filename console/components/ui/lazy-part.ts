import { lazy, type ComponentType, type LazyExoticComponent } from "react";

// A part that is loaded when it is first shown. While the service is out of reach, what stands in its place stays; one file that
// could not be had must not take the whole page with it.

const RETRY_MS = 3000;
/** After a minute the file is not late but gone, for example because another version of the console was installed. */
const TRIES_MAX = 20;

export function lazyPart<Props>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): LazyExoticComponent<ComponentType<Props>> {
  return lazy(async () => {
    for (let tries = 1; ; tries++) {
      try {
        return await load();
      } catch (error) {
        if (tries === TRIES_MAX) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  });
}
