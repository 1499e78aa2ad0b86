import { enableExactJson } from "../src/lib/exact-json.ts";

// Every test file starts with the set-up of a process or thread of the service.
enableExactJson();
