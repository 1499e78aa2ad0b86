import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), tailwind()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    target: "es2023",
    // The polyfill is an inline script, which the content security policy forbids.
    modulePreload: { polyfill: false },
    // A file that is inlined as data: would need an exception in the policy.
    assetsInlineLimit: 0,
    manifest: true,
    reportCompressedSize: false,
  },
  // For working on the console: `npm run console` beside a service on its usual port.
  server: { proxy: { "/v1": "http://127.0.0.1:8080", "/api": "http://127.0.0.1:8080" } },
});
