export function EventsScreen() {
  return <h1 className="p-4 text-lg font-semibold">Events</h1>;
}
