export function AlertsScreen() {
  return <h1 className="p-4 text-lg font-semibold">Alerts</h1>;
}
