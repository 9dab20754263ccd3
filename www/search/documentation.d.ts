/** This project's documents, as `www/build/documentation.ts` reads them. */
declare module 'virtual:documentation' {
  const sections: { id: string, document: string, heading: string, text: string }[]
  export default sections
}
