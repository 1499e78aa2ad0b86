// The rows of a list that is read by cursor. Only the pages in sight are in memory; of all others, their cursor and length are
// known, so that they take their place and can be read again.

export interface PageMark {
  /** The cursor that the page follows; null: the first. */
  readonly after: string | null;
  /** How many rows it has, or probably will have. */
  readonly size: number;
  readonly isRead: boolean;
}

export interface Pages {
  readonly marks: readonly PageMark[];
}

/** `expected` is the number of rows that others have counted. */
export const unread = (expected: number, perPage: number): Pages => ({
  marks: [{ after: null, size: Math.max(1, Math.min(expected, perPage)), isRead: false }],
});

interface ReadPage {
  readonly rows: number;
  readonly next: string | null;
  readonly total: number;
}

/** After a page was read. One that is read again keeps its length, so that no row below it moves. */
export function withPage(pages: Pages, index: number, page: ReadPage, perPage: number): Pages {
  const mark = pages.marks[index];
  if (mark === undefined || mark.isRead) return pages;
  const marks = [...pages.marks.slice(0, index), { ...mark, size: page.rows, isRead: true }];
  const before = marks.reduce((sum, { size }) => sum + size, 0);
  if (page.next !== null) {
    marks.push({ after: page.next, size: Math.max(1, Math.min(perPage, page.total - before)), isRead: false });
  }
  return { marks };
}

export const rowsIn = ({ marks }: Pages) => marks.reduce((sum, { size }) => sum + size, 0);

/** All pages are read. */
export const isWhole = ({ marks }: Pages) => marks.every(({ isRead }) => isRead);
