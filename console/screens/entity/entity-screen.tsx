export function EntityScreen() {
  return <h1 className="p-4 text-lg font-semibold">Entity</h1>;
}
