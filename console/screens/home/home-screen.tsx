export function HomeScreen() {
  return <h1 className="p-4 text-lg font-semibold">Home</h1>;
}
