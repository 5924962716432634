// What the theme makes while a page opens: wide tables and code that a keyboard can reach, and a name for each row of buttons.
function mend() {
  document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code").forEach((part) => { if (part.tabIndex < 0) part.tabIndex = 0 })
  document.querySelectorAll(".md-code__nav").forEach((part, number) => {
    if (!part.hasAttribute("aria-label")) part.setAttribute("aria-label", `Code block ${number + 1}`)
  })
}
const names = new Set()
document.querySelectorAll("nav[aria-label]").forEach((part) => {
  let name = part.getAttribute("aria-label")
  while (names.has(name.toLowerCase())) name += " (another)"
  names.add(name.toLowerCase())
  part.setAttribute("aria-label", name)
})
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true })
mend()
