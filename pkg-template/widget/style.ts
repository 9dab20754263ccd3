// The widget's style. A page can change it with these custom properties and with ::part().

export const STYLE = `
:host {
  --_accent: var(--tldr-accent, light-dark(#93500a, #f0a94a));
  --_on-accent: var(--tldr-on-accent, light-dark(#ffffff, #231a0a));
  --_line: var(--tldr-line, light-dark(#dcd5c6, #3a382e));
  display: block;
  padding: 0.8rem 1rem;
  border: 1px solid var(--_line);
  border-left: 4px solid var(--_accent);
  border-radius: 10px;
  background: var(--tldr-surface, transparent);
  font: 1rem/1.5 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif;
}
:host([hidden]), [hidden] { display: none !important; }
#bar { display: flex; align-items: center; gap: 0.75rem; }
#bar strong { flex: 1; letter-spacing: 0.03em; }
button {
  font: inherit;
  font-weight: 600;
  padding: 0.35em 0.9em;
  border: 1px solid var(--_accent);
  border-radius: 8px;
  background: var(--_accent);
  color: var(--_on-accent);
  cursor: pointer;
}
button:disabled { opacity: 0.5; cursor: default; }
#stop, #decline, #copy { background: transparent; color: inherit; }
:focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px; }
#consent { margin-top: 0.6rem; }
#question { margin: 0 0 0.5rem; }
#decline { margin-inline-start: 0.5rem; }
#loading { margin-top: 0.6rem; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
#load-notes {
  margin: 0.2rem 0 0;
  padding: 0;
  list-style: none;
  opacity: 0.75;
  overflow-wrap: anywhere;
}
progress { display: block; width: 100%; accent-color: var(--_accent); }
#summary { margin: 0.6rem 0 0; font-size: 1.08rem; overflow-wrap: anywhere; }
#summary ul { margin: 0; padding-inline-start: 1.2em; }
#summary p { margin: 0; }
#summary p:empty, #copied:empty { display: none; }
#copy { margin-top: 0.5rem; padding-block: 0.15em; font-size: 0.85rem; }
#note, #copied { margin: 0.2rem 0 0; font-size: 0.8rem; opacity: 0.75; }
#error {
  margin-top: 0.6rem;
  padding: 0.5rem 0.75rem;
  border: 1px solid light-dark(#a3241b, #ff9d90);
  border-radius: 8px;
  font-size: 0.9rem;
  overflow-wrap: anywhere;
}
details { margin-top: 0.6rem; font-size: 0.9rem; }
summary { cursor: pointer; opacity: 0.85; }
form { display: grid; gap: 0.4rem; margin-top: 0.5rem; justify-items: start; }
textarea {
  font: inherit;
  box-sizing: border-box;
  width: 100%;
  padding: 0.5rem;
  border: 1px solid var(--_line);
  border-radius: 8px;
  background: transparent;
  color: inherit;
  resize: vertical;
}
`
