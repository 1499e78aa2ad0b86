/** A compiled condition over the current event. */
export type Predicate = () => boolean;
