import { defineConfig } from '@playwright/test'
import { DEMOS_PORT, PORT, serverPort, WORKERS } from './tests/web/ports'

/** Tests of the built demos. */
const DEMOS = /\/(ai-chat|chat|chat-markdown|chats|docs|examples|form|lab|landing|page-built-in-ai|page-search|page-tools|shift|tldr|widget-page)\.spec\.ts$/

/** Run cargo, which waits while the other lane of `npm test` builds its tests: so these come last. */
const KERNELS = /kernel(s|-cases)\.spec\.ts/

/** Tests in other browsers, which tests/web/firefox.ts and webkit.ts start. */
const FIREFOX = /firefox\.spec\.ts/
const WEBKIT = /webkit\.spec\.ts/

export default defineConfig({
  testDir: 'tests',
  testMatch: '**/*.spec.ts',
  workers: WORKERS,
  timeout: 240_000,
  // The other lane of `npm test` keeps the machine busy.
  expect: { timeout: 20_000 },
  reporter: 'list',
  outputDir: 'test-results',
  use: {
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      // WebGPU without a window and without a GPU, on Chromium's own SwiftShader.
      args: [
        '--no-sandbox', '--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--enable-features=Vulkan',
        // SwiftShader is ten times slower to compile kernels whose workgroup memory Vulkan zeroes;
        // so they do it themselves.
        '--disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension',
        '--no-first-run', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync'
      ]
    }
  },
  projects: [
    { name: 'package', testIgnore: [DEMOS, FIREFOX, KERNELS, WEBKIT], use: { baseURL: `http://localhost:${PORT}` } },
    { name: 'demos', testMatch: DEMOS, use: { baseURL: `http://localhost:${DEMOS_PORT}` } },
    { name: 'firefox', testMatch: FIREFOX, use: { baseURL: `http://localhost:${PORT}` } },
    { name: 'webkit', testMatch: WEBKIT, use: { baseURL: `http://localhost:${PORT}` } },
    { name: 'kernels', testMatch: KERNELS, use: { baseURL: `http://localhost:${PORT}` } }
  ],
  webServer: [
    ...Array.from({ length: WORKERS }, (_, worker) => ({
      command: 'node tests/web/server.mjs',
      env: { PORT: String(serverPort(worker)) },
      url: `http://localhost:${serverPort(worker)}/control/count`,
      reuseExistingServer: false
    })),
    {
      command: `npx vite preview --port ${DEMOS_PORT} --strictPort`,
      url: `http://localhost:${DEMOS_PORT}`,
      reuseExistingServer: false
    }
  ]
})
