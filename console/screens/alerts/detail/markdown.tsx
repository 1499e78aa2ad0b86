import type { ComponentProps, ReactNode } from "react";
import Markdown, { type Components } from "react-markdown";

const ALLOWED = /^(https?:|mailto:)/i;

function SafeLink({ href, children }: ComponentProps<"a">) {
  if (href === undefined || href === "") return <span>{children}</span>;
  return (
    <a
      href={href}
      target="_blank"
      rel="noopener noreferrer nofollow"
      className="text-accent underline underline-offset-2"
    >
      {children}
    </a>
  );
}

const Picture = ({ alt }: ComponentProps<"img">) => <span className="text-ink3">[picture{alt ? `: ${alt}` : ""}]</span>;

/** Headings of a comment are not headings of the page. */
const Heading = ({ children }: { children?: ReactNode }) => <p className="font-semibold">{children}</p>;

const COMPONENTS: Components = {
  a: SafeLink,
  img: Picture,
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
};

/** Markdown of a comment. Nothing in it is loaded, and nothing in it is HTML. */
export default function CommentText({ text }: { text: string }) {
  return (
    <Markdown urlTransform={(url) => (ALLOWED.test(url) ? url : "")} components={COMPONENTS}>
      {text}
    </Markdown>
  );
}
