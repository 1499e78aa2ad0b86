export function ReportScreen() {
  return <h1 className="p-4 text-lg font-semibold">Report</h1>;
}
