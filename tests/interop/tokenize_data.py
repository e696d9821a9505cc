#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tokenize_data.py TOOL READER: what examples/tokenize_data.py, the tool, writes is what the library
reads. What it should write is computed here from the tokenizer alone, with conversations put
together by hand."""

import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile

import tokenizers

TOOL, READER = sys.argv[1:3]
IGNORED = -100


def tool(*arguments, environment=None):
    """(status, output, errors) of the tool."""
    done = subprocess.run(
        [sys.executable, TOOL, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    return done.returncode, done.stdout, done.stderr


def made(*arguments):
    status, output, errors = tool(*arguments)
    assert status == 0, errors
    return output


def refused(*arguments, environment=None):
    """The one line that the tool says when it refuses."""
    status, output, errors = tool(*arguments, environment=environment)
    assert status == 2 and output == "", (status, output, errors)
    assert errors.count("\n") == 1 and errors.startswith("tokenize_data.py: "), errors
    return errors


def read(path):
    """The extents and the documents that the library reads."""
    done = subprocess.run([READER, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    words = first.split()
    extents = dict(zip(words[::2], map(int, words[1::2])))
    return extents, [json.loads(line) for line in lines]


def document(ids, labels=None):
    return {"input_ids": ids, "labels": ids if labels is None else labels}


def expect(path, wanted, vocabulary=None):
    extents, documents = read(path)
    assert documents == wanted, (documents, wanted)
    assert extents["tokens"] == sum(len(d["input_ids"]) for d in wanted)
    if vocabulary is not None:
        assert extents["vocabulary"] == vocabulary, extents
    assert extents["labels"] == any(d["input_ids"] != d["labels"] for d in wanted), extents
    return documents


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


def write_lines(path, values):
    return write(path, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))


STORY = "Es war einmal ein Schäfer, 狼 und 🐺.\n\n  It was a dark night; it was a dark day.\n" * 30
SHORT = "one two three\n"


class Pieces:
    """A conversation put together of pieces, each predicted or not."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.ids, self.labels = [], []

    def add(self, text, predicted=False):
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        self.ids += ids
        self.labels += ids if predicted else [IGNORED] * len(ids)
        return self

    def turn(self, role, content, predicted=False):
        self.add("<|im_start|>").add(role + "\n").add(content, predicted)
        return self.add("<|im_end|>", predicted).add("\n")

    def document(self):
        return document(self.ids, self.labels)


def test_texts(folder, model, tokenizer):
    end = tokenizer.token_to_id("<|endoftext|>")
    size = tokenizer.get_vocab_size()
    story = tokenizer.encode(STORY).ids
    short = tokenizer.encode(SHORT).ids
    text = write(f"{folder}/story.txt", STORY)
    lines = write_lines(f"{folder}/lines.jsonl", [{"text": SHORT, "id": 7}, {"text": STORY}])
    out = f"{folder}/out.tokens"

    said = made("--tokenizer", model, "--output", out, text)
    expect(out, [document(story + [end])], size)
    assert f"1 documents, {len(story) + 1} tokens (0 masked)" in said, said
    made("--tokenizer", model, "--output", out, lines, text)
    expect(out, [document(ids + [end]) for ids in (short, story, story)])
    made("--tokenizer", f"{model}/tokenizer.json", "--output", out, "--no-end-token", text)
    expect(out, [document(story)])
    made("--tokenizer", model, "--output", out, "--end-token", "<|im_end|>", text)
    expect(out, [document(story + [tokenizer.token_to_id("<|im_end|>")])])
    made("--tokenizer", model, "--output", out, "--format", "text", lines)
    with open(lines, encoding="utf-8") as file:
        expect(out, [document(tokenizer.encode(file.read()).ids + [end])])
    # A text that already ends with the end token gets no second one.
    ended = write(f"{folder}/ended.txt", SHORT + "<|endoftext|>")
    made("--tokenizer", model, "--output", out, ended)
    expect(out, [document(short + [end])])
    assert not os.path.exists(out + ".partial")


def test_long_text(folder, model, tokenizer):
    """A text of more parts than one is one document, of the same tokens."""
    spec = importlib.util.spec_from_file_location("tokenize_data_module", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for size in (1, 7, 100, 1000, 10**6):
        parts = list(module.parts_of(STORY, size))
        assert "".join(parts) == STORY
        assert all(part.endswith("\n") and not part[0].isspace() for part in parts), parts
        assert (len(parts) == 1) == (size == 10**6), len(parts)
    module.parts_of.__defaults__ = (100,)
    out = f"{folder}/long.tokens"
    texts = [write(f"{folder}/long{i}.txt", STORY + "and the end" * i) for i in range(2)]
    with contextlib.redirect_stdout(io.StringIO()):
        assert module.main(["--tokenizer", model, "--output", out, *texts]) == 0
    end = tokenizer.token_to_id("<|endoftext|>")
    ids = [tokenizer.encode(STORY + "and the end" * i).ids for i in range(2)]
    expect(out, [document(i + [end]) for i in ids])


def test_wide_tokens(folder):
    """More than 65536 tokens take 4 bytes each."""
    words = {f"w{i}": i for i in range(70000)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(f"{folder}/wide.json")
    text = write(f"{folder}/wide.txt", "w69999 w1 w65536 w5")
    out = f"{folder}/wide.tokens"
    made("--tokenizer", f"{folder}/wide.json", "--no-end-token", "--output", out, text)
    expect(out, [document([69999, 1, 65536, 5])], 70000)
    assert os.path.getsize(out) == 192 + 16


def test_own_special_tokens(folder):
    """What the tokenizer adds itself to a text stays, and a conversation gets it from its template."""
    words = {"<s>": 0, "</s>": 1, "<unk>": 2, "a": 3, "b": 4, "user": 5, "assistant": 6}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    os.makedirs(f"{folder}/own")
    tokenizer.save(f"{folder}/own/tokenizer.json")
    template = (
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ ' user ' + m.content }}"
        "{% else %}{{ ' assistant ' + m.content + eos_token }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ ' assistant ' }}{% endif %}"
    )
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
    write(f"{folder}/own/tokenizer_config.json", json.dumps(config))
    write(f"{folder}/own/chat_template.jinja", template)
    turns = [("user", "a"), ("assistant", "b"), ("user", "b"), ("assistant", "a a")]
    x = IGNORED
    ids = [0, 5, 3, 6, 4, 1, 5, 4, 6, 3, 3, 1]
    wanted = document(ids, [x, x, x, x, 4, 1, x, x, x, 3, 3, 1])
    out = f"{folder}/own.tokens"
    source = write_lines(f"{folder}/own.jsonl", [{"text": "a b"}, *conversation_lines([turns])])
    made("--tokenizer", f"{folder}/own", "--output", out, source)
    expect(out, [document([0, 3, 4, 1]), wanted], 7)


CONVERSATIONS = [
    [("user", "Hallo, 狼!"), ("assistant", "Good  day. 🐺")],
    [("system", "Be kind."), ("user", "one"), ("assistant", "two"), ("user", "3"), ("assistant", "4")],
    [("user", "one"), ("assistant", "two"), ("user", "left open")],
]


def conversation_lines(conversations):
    return [
        {"messages": [{"role": role, "content": content} for role, content in turns]}
        for turns in conversations
    ]


def test_conversations(folder, model, tokenizer):
    wanted = []
    for turns in CONVERSATIONS:
        pieces = Pieces(tokenizer)
        for role, content in turns:
            pieces.turn(role, content, predicted=role == "assistant")
        wanted.append(pieces.document())
    chats = write_lines(f"{folder}/chats.jsonl", conversation_lines(CONVERSATIONS))
    out = f"{folder}/chats.tokens"
    made("--tokenizer", model, "--output", out, chats)
    expect(out, wanted)

    # A token that reaches from the prompt into the answer belongs to the answer.
    reaching = [("user", "one"), ("assistant", "  Good day.")]
    source = write_lines(f"{folder}/reaching.jsonl", conversation_lines([reaching]))
    made("--tokenizer", model, "--output", out, source)
    labels = read(out)[1][0]["labels"]
    predicted = [label for label in labels if label != IGNORED]
    said = tokenizer.decode(predicted, skip_special_tokens=False)
    assert said == "\n  Good day.<|im_end|>", said

    made("--tokenizer", model, "--output", out, chats)
    # The same with a template that marks what the assistant says.
    template = (
        "{%- for m in messages %}\n"
        "{{- '<|im_start|>' + m.role + '\\n' }}\n"
        "{%- if m.role == 'assistant' %}\n"
        "{%- generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}\n"
        "{%- else %}{{ m.content + '<|im_end|>' }}{% endif %}{{ '\\n' }}\n"
        "{%- endfor %}"
    )
    marking = write(f"{folder}/marking.jinja", template)
    made("--tokenizer", model, "--chat-template", marking, "--output", out, chats)
    expect(out, wanted)

    # Text among conversations is predicted whole, also before the first mask and behind the last.
    text = write(f"{folder}/beside.txt", SHORT)
    end = tokenizer.token_to_id("<|endoftext|>")
    plain = document(tokenizer.encode(SHORT).ids + [end])
    made("--tokenizer", model, "--output", out, text, chats, text)
    expect(out, [plain, *wanted, plain])


def test_thoughts(folder, model, tokenizer):
    """A template that drops the thoughts of all turns but the last."""
    template = (
        "{%- for m in messages %}"
        "{{- '<|im_start|>' + m.role + '\\n' }}"
        "{%- set text = m.content %}"
        "{%- if m.role == 'assistant' %}"
        "{%- set text = text.split('</think>')[-1].lstrip('\\n') %}"
        "{%- if loop.last %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"
        "{%- endif %}"
        "{{- text + '<|im_end|>\\n' }}"
        "{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
    )
    turns = [
        ("user", "one"),
        ("assistant", "<think>hm</think>\n\ntwo"),
        ("user", "three"),
        ("assistant", "four"),
    ]
    pieces = Pieces(tokenizer).turn("user", "one").turn("assistant", "two", True)
    pieces.turn("user", "three").turn("assistant", "<think>\n\n</think>\n\nfour", True)
    chats = write_lines(f"{folder}/thoughts.jsonl", conversation_lines([turns]))
    thinking = write(f"{folder}/thinking.jinja", template)
    out = f"{folder}/thoughts.tokens"
    made("--tokenizer", model, "--chat-template", thinking, "--output", out, chats)
    expect(out, [pieces.document()])


def test_tools(folder, model, tokenizer):
    """Tools and calls of tools go through the template; an answer of a tool is no assistant's."""
    template = (
        "{%- if tools %}{{- '<|im_start|>system\\n' + (tools | tojson) + '<|im_end|>\\n' }}{%- endif %}"
        "{%- for m in messages %}"
        "{{- '<|im_start|>' + m.role + '\\n' }}"
        "{%- if m.content %}{{- m.content }}{%- endif %}"
        "{%- for call in m.tool_calls or [] %}{{- '<call>' + call.name + '</call>' }}{%- endfor %}"
        "{{- '<|im_end|>\\n' }}"
        "{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
    )
    line = {
        "tools": [{"name": "wetter", "about": "größer"}],
        "messages": [
            {"role": "user", "content": "sun?"},
            {"role": "assistant", "content": None, "tool_calls": [{"name": "wetter"}]},
            {"role": "tool", "content": "rain"},
            {"role": "assistant", "content": "No."},
        ],
    }
    pieces = Pieces(tokenizer)
    pieces.turn("system", '[{"name": "wetter", "about": "größer"}]').turn("user", "sun?")
    pieces.turn("assistant", "<call>wetter</call>", True).turn("tool", "rain")
    pieces.turn("assistant", "No.", True)
    chats = write_lines(f"{folder}/tools.jsonl", [line])
    calling = write(f"{folder}/calling.jinja", template)
    out = f"{folder}/tools.tokens"
    made("--tokenizer", model, "--chat-template", calling, "--output", out, chats)
    expect(out, [pieces.document()])


def test_json_lines(folder):
    """Tokenized JSON lines, as Python writes them, are read alike."""
    wanted = [document([5, 6, 7]), document([1, 70000, 2], [IGNORED, 70000, 3])]
    lines = [{"input_ids": [5, 6, 7]}, {**wanted[1], "attention_mask": [1, 1, 1]}]
    expect(write_lines(f"{folder}/ids.jsonl", lines), wanted, 70001)


def test_refusals(folder, model):
    out = f"{folder}/refused.tokens"

    def line(value):
        return write(f"{folder}/bad.jsonl", '{"text": "good"}\n\n' + value + "\n")

    def says(value, *words):
        error = refused("--tokenizer", model, "--output", out, line(value))
        assert "bad.jsonl' line 3" in error, error
        assert all(word in error for word in words), error

    says("{", "no JSON")
    says("[1]", "no JSON object")
    says('{"id": 3}', "neither 'text'", "'messages'")
    says('{"text": 3}', "neither 'text'")
    says('{"messages": []}', "no array of messages")
    says('{"messages": [{"role": "user", "content": "a"}]}', "no message is the assistant's")
    says('{"messages": [{"content": "a"}]}', "message 0 has no 'role'")
    says('{"messages": [{"role": "assistant"}]}', "message 0 has no 'content'")
    says('{"messages": [{"role": "assistant", "content": 3}]}', "the chat template says")
    chats = write_lines(f"{folder}/chats.jsonl", conversation_lines(CONVERSATIONS[:1]))
    moody = write(
        f"{folder}/moody.jinja",
        "{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}",
    )
    error = refused("--tokenizer", model, "--chat-template", moody, "--output", out, chats)
    assert "changes earlier text" in error and "{% generation %}" in error, error
    raising = write(f"{folder}/raising.jinja", "{{ raise_exception('not these roles') }}")
    error = refused("--tokenizer", model, "--chat-template", raising, "--output", out, chats)
    assert "not these roles" in error, error
    broken = write(f"{folder}/broken.jinja", "{% if %}")
    error = refused("--tokenizer", model, "--chat-template", broken, "--output", out, chats)
    assert "chat template is wrong" in error, error
    error = refused("--tokenizer", f"{folder}/wide.json", "--output", out, chats)
    assert "no chat template" in error, error

    text = write(f"{folder}/short.txt", SHORT)
    assert "no end token" in refused("--tokenizer", f"{folder}/wide.json", "--output", out, text)
    error = refused("--tokenizer", model, "--end-token", "<none>", "--output", out, text)
    assert "no token '<none>'" in error, error
    error = refused("--tokenizer", f"{folder}/none", "--output", out, text)
    assert "none" in error, error
    error = refused("--tokenizer", model, "--output", out, f"{folder}/missing.txt")
    assert "missing.txt" in error, error
    error = refused("--tokenizer", model, "--output", f"{folder}/no/where", text)
    assert "no/where" in error, error
    empty = write(f"{folder}/empty.txt", "")
    assert "hold no document" in refused("--tokenizer", model, "--output", out, empty)
    with open(f"{folder}/latin.txt", "wb") as file:
        file.write(b"gr\xfc\xdfe")
    error = refused("--tokenizer", model, "--output", out, f"{folder}/latin.txt")
    assert "latin.txt" in error and "UTF-8" in error, error
    error = refused("--tokenizer", model, "--train-tokenizer", "300", "--output", out, text)
    assert "has a tokenizer" in error, error
    error = refused("--tokenizer", f"{folder}/new", "--train-tokenizer", "100", "--output", out, text)
    assert "less than 259" in error, error
    assert not os.path.exists(out) and not os.path.exists(out + ".partial")

    for package in ("tokenizers", "jinja2"):
        hidden = f"{folder}/without_{package}"
        os.makedirs(hidden)
        write(f"{hidden}/{package}.py", "raise ImportError('hidden')\n")
        error = refused(
            "--tokenizer", model, "--output", out, chats, environment={"PYTHONPATH": hidden}
        )
        assert f"pip install {package}" in error, error


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        inputs = [write(f"{folder}/train.txt", STORY + "one\n  two\n" * 50)]
        out = f"{folder}/trained.tokens"
        inputs.append(write_lines(f"{folder}/train.jsonl", conversation_lines(CONVERSATIONS)))
        said = made("--tokenizer", model, "--train-tokenizer", "400", "--output", out, *inputs)
        tokenizer = tokenizers.Tokenizer.from_file(f"{model}/tokenizer.json")
        size = tokenizer.get_vocab_size()
        assert 300 < size <= 400 and f"vocabulary {size}" in said, said
        assert tokenizer.decode(tokenizer.encode(STORY).ids) == STORY
        _, documents = read(out)
        assert len(documents) == 1 + len(CONVERSATIONS)

        test_texts(folder, model, tokenizer)
        test_long_text(folder, model, tokenizer)
        test_wide_tokens(folder)
        test_own_special_tokens(folder)
        test_json_lines(folder)
        test_conversations(folder, model, tokenizer)
        test_thoughts(folder, model, tokenizer)
        test_tools(folder, model, tokenizer)
        test_refusals(folder, model)
    print("what Python writes is what the library reads")


main()
