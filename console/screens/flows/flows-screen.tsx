export function FlowsScreen() {
  return <h1 className="p-4 text-lg font-semibold">Flows</h1>;
}
