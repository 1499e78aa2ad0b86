export function AxisScreen() {
  return <h1 className="p-4 text-lg font-semibold">Axis</h1>;
}
