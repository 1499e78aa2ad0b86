import type { IconName } from "../../components/ui/icons.tsx";
import { DOMAIN_ICON, DOMAIN_WORD, domainOf } from "../../text/domains.ts";

// The part of the site that a rule watches.

export const sourceWord = (source: string) => (source === "any" ? "Everything" : DOMAIN_WORD[domainOf(source)]);
export const sourceIcon = (source: string): IconName => (source === "any" ? "layers" : DOMAIN_ICON[domainOf(source)]);
