import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    // Tests wait for conditions; only a machine that is very busy needs this long.
    testTimeout: 60_000,
    // By default one core is left idle, which of two is half.
    maxWorkers: '100%',
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      { extends: true, test: { name: 'unit', include: ['**/tests/**/*.spec.ts'] } },
      { extends: true, test: { name: 'agents', include: ['**/tests/**/*.agents.ts'] } },
      { extends: true, test: { name: 'live', include: ['**/tests/**/*.live.ts'] } },
    ],
  },
})
