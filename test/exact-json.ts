import { enableExactJson } from "../src/lib/exact-json.ts";

// Every test file begins as a process and a thread of the service do.
enableExactJson();
