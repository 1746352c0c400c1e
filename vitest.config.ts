import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      { extends: true, test: { name: 'unit', include: ['**/tests/**/*.spec.ts'] } },
      { extends: true, test: { name: 'live', include: ['**/tests/**/*.live.ts'] } },
    ],
  },
})
