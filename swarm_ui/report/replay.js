// The command that runs a decision again, for the clipboard.

// One word of a shell command. Inside single quotes, a shell reads nothing but the next quote.
const quoted = (text) => (/^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// The folder of this page with "/" at its end; "" where the page was not opened from a disk.
const folder = () => {
  if (location.protocol !== "file:") return "";
  try {
    const path = decodeURIComponent(location.pathname).replace(/^\/(?=[A-Za-z]:\/)/, "");
    return path.slice(0, path.lastIndexOf("/") + 1);
  } catch {
    return "";
  }
};

// Null where there is no step, the episode is in no trace file, or its name is no line of text.
const replayCommand = (entry, step) => {
  const path = folder() + entry.file;
  if (!entry.steps || !entry.file || /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(path)) return null;
  const name = folder() ? path : `./${path}`;
  return `swarm-ui replay ${quoted(name)} --episode ${entry.at} --step ${step + 1}`;
};

class ReplayButton {
  constructor() {
    this.button = button("Copy the replay command", "Copy the replay command", () => this.copy());
    this.code = make("code", "", "");
    this.said = make("span", "", "");
    this.said.setAttribute("role", "status");
    this.line = make("p", "note copied", this.said, this.code);
    this.line.hidden = true;
  }

  show(entry, step) {
    this.command = replayCommand(entry, step);
    this.button.disabled = this.command === null;
    this.button.title = this.command ?? (entry.steps ? "This episode is not in a trace file" : "This episode has no decision");
    this.line.hidden = true;
  }

  async copy() {
    this.code.textContent = this.command;
    this.line.hidden = false;
    try {
      await navigator.clipboard.writeText(this.command);
      this.said.textContent = "Copied: ";
    } catch {
      getSelection().selectAllChildren(this.code);
      this.said.textContent = "The browser did not allow copying. Press Ctrl+C: ";
    }
    if (!folder()) this.said.textContent += "(run it in the folder of the run) ";
  }
}
