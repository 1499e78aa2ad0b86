import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

// CodeMirror in a shadow root. There it brings its styles as constructed style sheets, which the content security policy allows; in the
// document it would add style elements, which it forbids.

const highlighting = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--accent)" },
  { tag: tags.comment, color: "var(--ink3)", fontStyle: "italic" },
  { tag: [tags.string, tags.content], color: "var(--ink)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--ink)", fontWeight: "600" },
  { tag: [tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: "var(--ink3)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "12.5px", color: "var(--ink)", background: "var(--panel)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.6", fontVariantLigatures: "none" },
  ".cm-content": { caretColor: "var(--accent)", padding: "12px 0" },
  ".cm-cursor": { borderLeftColor: "var(--accent)" },
  ".cm-gutters": { background: "transparent", color: "var(--ink3)", border: "none" },
  ".cm-activeLine": { background: "color-mix(in oklab, var(--hover) 55%, transparent)" },
  ".cm-activeLineGutter": { background: "transparent", color: "var(--ink)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in oklab, var(--accent) 28%, transparent)",
  },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--critical)",
    textUnderlineOffset: "3px",
  },
  ".cm-tooltip": {
    background: "var(--raised)",
    color: "var(--ink)",
    border: "1px solid var(--line2)",
    borderRadius: "6px",
  },
  ".cm-diagnostic": { fontFamily: "var(--font-sans)", padding: "6px 10px", borderLeft: "3px solid var(--critical)" },
});

/**
 * Types over a selection itself: a browser that does it gives the new text the colours of the old one by a style attribute, which
 * the policy forbids and reports.
 */
const typing = EditorView.domEventHandlers({
  beforeinput: ({ inputType, data }, view) => {
    if (inputType !== "insertText" || data === null || view.state.selection.main.empty) return false;
    if (!view.state.readOnly) {
      view.dispatch(
        view.state.update(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true }),
      );
    }
    // Whoever handles an event prevents what the browser would do.
    return true;
  },
});

export interface YamlEditor {
  setText(text: string): void;
  setFaults(faults: readonly Omit<Diagnostic, "severity">[]): void;
  focus(): void;
  destroy(): void;
}

interface YamlEditorOptions {
  readonly parent: ShadowRoot;
  readonly text: string;
  readonly label: string;
  readonly isReadOnly: boolean;
  readonly onChange: (text: string) => void;
}

export function openYamlEditor({ parent, text, label, isReadOnly, onChange }: YamlEditorOptions): YamlEditor {
  let isSetting = false;
  const view = new EditorView({
    root: parent,
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        lintGutter(),
        history(),
        drawSelection(),
        indentOnInput(),
        highlightActiveLine(),
        yaml(),
        syntaxHighlighting(highlighting),
        look,
        typing,
        // Tab leaves the editor, as everywhere else.
        keymap.of([...defaultKeymap, ...historyKeymap]),
        EditorState.readOnly.of(isReadOnly),
        EditorState.tabSize.of(2),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !isSetting) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    setText: (next) => {
      if (next === view.state.doc.toString()) return;
      isSetting = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
      isSetting = false;
    },
    setFaults: (faults) => {
      const length = view.state.doc.length;
      const diagnostics: Diagnostic[] = faults.map(({ from, to, message }) => ({
        from: Math.min(from, length),
        to: Math.min(to, length),
        message,
        severity: "error",
      }));
      view.dispatch(setDiagnostics(view.state, diagnostics));
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
