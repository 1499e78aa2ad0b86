/** What went wrong, as a sentence. */
export function failureWords(error: Error): string {
  const faults = (error as { faults?: readonly { field: string; message: string }[] }).faults ?? [];
  const text = [error.message, ...faults.map(({ field, message }) => `${field} ${message}`)].join(": ");
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
