import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

// Links and paths on the pages: a wrong one is worse than none.

const root = fileURLToPath(new URL("../", import.meta.url));
const pages = globSync(["*.md", "docs/**/*.md"], { cwd: root });

/** The prose of a page, without code blocks. */
const proseOf = (page: string) => readFileSync(join(root, page), "utf8").replaceAll(/^```[^]*?^```$/gm, "");

const anchors = new Map(pages.map((page) => [page, anchorsOf(page)]));

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: string): Set<string> {
  const titles = [...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, title]) => title!.toLowerCase());
  return new Set(titles.map((title) => title.replaceAll(/[^a-z0-9 _-]/g, "").replaceAll(" ", "-")));
}

test("every link on a page leads to a file and a heading that exist", () => {
  const broken = pages.flatMap((page) => {
    const links = [...proseOf(page).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link]) => link!);
    return links
      .filter((link) => {
        const [path, anchor] = link.split("#") as [string, string?];
        const target = path === "" ? page : relative(root, join(root, dirname(page), path));
        if (!existsSync(join(root, target))) return true;
        return anchor !== undefined && target.endsWith(".md") && !anchors.get(target)?.has(anchor);
      })
      .map((link) => `${page}: ${link}`);
  });
  expect(broken).toEqual([]);
});

test("every source file that a page names exists", () => {
  const missing = pages
    .filter((page) => page !== "CHANGELOG.md")
    .flatMap((page) => {
      const paths = [...proseOf(page).matchAll(/`((?:src|test|bench|bin|docs)\/[\w./-]+\.\w+)`/g)].map(
        ([, path]) => path!,
      );
      return paths.filter((path) => !existsSync(join(root, path))).map((path) => `${page}: ${path}`);
    });
  expect(missing).toEqual([]);
});
