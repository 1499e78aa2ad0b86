/** Keeps the platform word, with which names of sources begin. */
export interface PlatformWordStore {
  /** Empty while nothing stored uses a word; undefined before the first check. */
  read(): Promise<string | undefined>;
  /** Keeps the word unless another one is kept. Returns the one that is kept. */
  keep(word: string): Promise<string>;
}
