export function RulesScreen() {
  return <h1 className="p-4 text-lg font-semibold">Rules</h1>;
}
