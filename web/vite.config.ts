import { defineConfig } from "vite";

// The page is served by ascar itself and packed in its wheel; names without digests keep its history readable.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../python/ascar/web/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    license: { fileName: "licences.json" },
    rollupOptions: {
      output: {
        entryFileNames: "explore.js",
        chunkFileNames: "[name].js",
        assetFileNames: "[name][extname]",
      },
    },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8700" } },
});
