export default function Part(_: any) {
  return null;
}
