/** Copies a text, also where the page has no secure context. It reports whether it succeeded. */
export async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext && navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Refused: the way below may be allowed.
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.setAttribute("readonly", "");
  area.className = "visually-hidden";
  const focused = document.activeElement as HTMLElement | null;
  // A modal dialog keeps the rest of the document from being selected.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const ok = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return ok;
}
