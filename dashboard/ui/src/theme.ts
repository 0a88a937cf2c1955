// Runs before the first paint, so that the page does not flash in the other theme.
export {};
let theme: string | null = null;
try {
  theme = localStorage.getItem("weaver.theme");
} catch {
  // Storage is disabled: the system's theme.
}
if (theme === "dark" || theme === "light") document.documentElement.classList.add(theme);
