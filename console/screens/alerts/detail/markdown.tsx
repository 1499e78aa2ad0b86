import Markdown from "react-markdown";

const ALLOWED = /^(https?:|mailto:)/i;

/** Markdown of a comment. Nothing in it is loaded, and nothing in it is HTML. */
export default function CommentText({ text }: { text: string }) {
  return (
    <Markdown
      urlTransform={(url) => (ALLOWED.test(url) ? url : "")}
      components={{
        a: ({ href, children }) =>
          href === undefined || href === "" ? (
            <span>{children}</span>
          ) : (
            <a
              href={href}
              target="_blank"
              rel="noopener noreferrer nofollow"
              className="text-accent underline underline-offset-2"
            >
              {children}
            </a>
          ),
        img: ({ alt }) => <span className="text-ink3">[picture{alt ? `: ${alt}` : ""}]</span>,
        // Headings of a comment are not headings of the page.
        ...Object.fromEntries(
          (["h1", "h2", "h3", "h4", "h5", "h6"] as const).map((name) => [
            name,
            ({ children }: { children?: React.ReactNode }) => <p className="font-semibold">{children}</p>,
          ]),
        ),
      }}
    >
      {text}
    </Markdown>
  );
}
