// Where the tests' servers are. Workers run at the same time, and tests count what their server was
// asked for and switch it off: so each worker has a server of its own.

/** Tests that run at the same time. Some only wait while others keep the software GPU busy. */
export const WORKERS = 2

const FIRST = Number(process.env.PORT ?? 8930)

/** Ports of a worker: two for its server, the others for the apps that its tests serve. */
const EACH = 40

/** The port of a worker's server. The next one is the same server at another origin. */
export const serverPort = (worker: number) => FIRST + EACH * worker

/** The server of the worker that runs this. */
export const PORT = serverPort(Number(process.env.TEST_PARALLEL_INDEX ?? 0))

/** The other origin, which lets every page read its files. */
export const ELSEWHERE = `http://localhost:${PORT + 1}`

/** The built demos, which are the same for all workers. */
export const DEMOS_PORT = FIRST + 2
