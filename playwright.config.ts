import { defineConfig } from '@playwright/test'

/** The tests' own server; tests/web/server.mjs also takes the port after it. */
const PORT = Number(process.env.PORT ?? 8930)

/** The built demos. */
const DEMOS = { port: PORT + 2, specs: /(chat|tldr)\.spec\.ts/ }

/** Tests in another browser, which tests/web/firefox.ts starts. */
const FIREFOX = /firefox\.spec\.ts/

export default defineConfig({
  testDir: 'tests',
  testMatch: '**/*.spec.ts',
  // A software GPU uses every core there is.
  workers: 1,
  timeout: 180_000,
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
    { name: 'package', testIgnore: [DEMOS.specs, FIREFOX], use: { baseURL: `http://localhost:${PORT}` } },
    { name: 'demos', testMatch: DEMOS.specs, use: { baseURL: `http://localhost:${DEMOS.port}` } },
    { name: 'firefox', testMatch: FIREFOX, use: { baseURL: `http://localhost:${PORT}` } }
  ],
  webServer: [
    {
      command: 'node tests/web/server.mjs',
      env: { PORT: String(PORT) },
      url: `http://localhost:${PORT}/control/count`,
      reuseExistingServer: false
    },
    {
      command: `npx vite preview --port ${DEMOS.port} --strictPort`,
      url: `http://localhost:${DEMOS.port}`,
      reuseExistingServer: false
    }
  ]
})
