// wgpu 30 cannot ask a browser for the features `subgroups` and
// `chromium-experimental-subgroup-matrix`, because its web back end does not map them. So this
// wraps the browser's own `requestDevice`, once, and only for devices with our label. Remove it
// when wgpu maps the features. It also helps devices in Firefox: see hurry.ts. Nor can wgpu ask for an
// adapter in compatibility mode.
import { COMPATIBILITY } from './adapter.js'
import { hurry } from './hurry.js'

/** The label of the crate's devices. */
const LABEL = 'tritloom'
/** Products of small matrices, which Chromium offers with `--enable-unsafe-webgpu`. */
const MATRICES = 'chromium-experimental-subgroup-matrix'

interface Adapter {
  features: ReadonlySet<string>
  info: { subgroupMatrixConfigs?: Iterable<MatrixConfig> }
  requestDevice(descriptor?: DeviceDescriptor): Promise<Parameters<typeof hurry>[0]>
}

interface MatrixConfig {
  componentType: string
  resultComponentType: string
  M: number
  N: number
  K: number
}

interface DeviceDescriptor {
  label?: string
  requiredFeatures?: Iterable<string>
}

/** Whether the adapter multiplies the matrices of our kernel: int8, 16 x 32 by 32 x 16. */
const hasMatrices = ({ features, info }: Adapter): boolean =>
  features.has(MATRICES) && [...(info.subgroupMatrixConfigs ?? [])].some(config =>
    config.componentType === 'i8' && config.resultComponentType === 'i32' &&
    config.M === 16 && config.N === 16 && config.K === 32)

let wrapped = false

/** Makes `requestDevice` ask for the features that the adapter has, and hurries the device. */
export function askForFeatures(): void {
  const { GPUAdapter } = globalThis as { GPUAdapter?: { prototype: Adapter } }
  if (wrapped || !GPUAdapter) return
  wrapped = true
  const requestDevice = GPUAdapter.prototype.requestDevice
  GPUAdapter.prototype.requestDevice = async function (descriptor) {
    if (descriptor?.label !== LABEL) return requestDevice.call(this, descriptor)
    const requiredFeatures = [...(descriptor.requiredFeatures ?? [])]
    if (this.features.has('subgroups')) requiredFeatures.push('subgroups')
    if (hasMatrices(this)) requiredFeatures.push(MATRICES)
    const device = await requestDevice.call(this, { ...descriptor, requiredFeatures })
    hurry(device)
    return device
  }
}

/** Calls `ask`. Until it returns, the browser is asked for adapters in compatibility mode. */
export function inCompatibilityMode(ask: () => void): void {
  const { gpu } = navigator as unknown as { gpu: { requestAdapter(options?: object): unknown } }
  const before = Object.getOwnPropertyDescriptor(gpu, 'requestAdapter')
  const { requestAdapter } = gpu
  gpu.requestAdapter = options => requestAdapter.call(gpu, { ...options, ...COMPATIBILITY })
  try {
    ask()
  } finally {
    if (before) Object.defineProperty(gpu, 'requestAdapter', before)
    else delete (gpu as Partial<typeof gpu>).requestAdapter
  }
}
