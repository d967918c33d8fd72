// A box that takes a file which is dropped on it, as text.
export function dropped(box, take) {
  box.addEventListener("dragover", event => {
    event.preventDefault();
    box.classList.add("over");
  });
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", async event => {
    event.preventDefault();
    box.classList.remove("over");
    const [file] = event.dataTransfer.files;
    if (file) take(await file.text());
  });
}
