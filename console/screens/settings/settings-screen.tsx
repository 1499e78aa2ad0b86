export function SettingsScreen() {
  return <h1 className="p-4 text-lg font-semibold">Settings</h1>;
}
