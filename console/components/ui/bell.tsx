/** The mark of Tocsin. */
export function Bell({ className = "" }: { className?: string }) {
  return (
    <svg viewBox="0 0 32 32" className={className} role="img" aria-label="Tocsin">
      <rect width="32" height="32" rx="9" fill="var(--accent-soft)" />
      <path d="M16 6.2c-4 0-6 3-6 6.8v4.2l-2.4 4.2h16.8L22 17.2V13c0-3.8-2-6.8-6-6.8Z" fill="var(--accent)" />
      <path d="M13 23.2a3 3 0 0 0 6 0Z" fill="var(--accent)" />
      <path
        d="M4.8 11.5c.4-2 1.2-3.6 2.4-4.9M27.2 11.5c-.4-2-1.2-3.6-2.4-4.9"
        stroke="var(--accent)"
        strokeWidth="1.6"
        strokeLinecap="round"
        fill="none"
        opacity=".7"
      />
    </svg>
  );
}
