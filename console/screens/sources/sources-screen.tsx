export function SourcesScreen() {
  return <h1 className="p-4 text-lg font-semibold">Sources</h1>;
}
