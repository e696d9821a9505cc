#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a file of tokens, as include/roundpipe/io/token_file.hpp describes it, for training.

Inputs are text files, each one document, and files of JSON lines (.jsonl, .ndjson, .json) whose
lines hold either `text`, a document, or `messages`, a conversation:

    {"text": "Once upon a time ..."}
    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}]}

A document is encoded as the tokenizer does it, and ends with the end token. A conversation is
written by the model's own chat template, and only what the assistant says, with the token that
ends its turn, is to be predicted: all other tokens are masked. `tools` of a line go to the
template, too.

  tokenize_data.py --tokenizer MODEL_FOLDER --output train.tokens book.txt chats.jsonl
  tokenize_data.py --tokenizer FOLDER --train-tokenizer 4096 --output train.tokens docs/*.md

With --train-tokenizer a byte-level BPE of so many tokens is trained on the inputs first, and
written to FOLDER, with a chat template, for a model that is trained from scratch.

Needs the package tokenizers, and jinja2 for conversations.
"""

import argparse
import array
import datetime
import json
import os
import struct
import sys
import uuid


class Fault(Exception):
    """What the user sees as one line; the exit status is 2."""


def import_or_fail(module, purpose):
    try:
        return __import__(module)
    except ImportError:
        raise Fault(f"{purpose} needs the Python package {module}: pip install {module}") from None


# --- The file -------------------------------------------------------------------------------------


class TokenFileWriter:
    """Writes a file of tokens, beside its name until finish()."""

    HEADER_BYTES = 128
    ALIGNMENT = 64

    def __init__(self, path, vocabulary):
        self.path = path
        self.partial = path + ".partial"
        self.vocabulary = vocabulary
        self.type_code = "H" if vocabulary <= 1 << 16 else "I"
        self.tokens = 0
        self.masked = 0
        self.documents = array.array("Q", [0])
        self.mask = bytearray()  # 8 flags a byte, once there is a mask
        self.flags = bytearray()  # those that fill no byte yet
        self.file = open(self.partial, "wb")
        self.file.write(bytes(self.HEADER_BYTES))

    def append(self, ids, predicted=None):
        """Appends tokens to the open document; `predicted` says for each whether it is a label."""
        if ids and max(ids) >= self.vocabulary:
            raise Fault(f"the tokenizer gives token {max(ids)}, beyond its {self.vocabulary} tokens")
        self.file.write(little_endian(array.array(self.type_code, ids)))
        if predicted is not None and not all(predicted):
            if self.masked == 0:  # the first mask: all tokens before it are labels
                self.mask = bytearray(b"\xff" * (self.tokens // 8))
                self.flags = bytearray(b"\1" * (self.tokens % 8))
            self.masked += len(ids) - sum(predicted)
        self.tokens += len(ids)
        if self.masked > 0:
            self.flags += bytes(len(ids) * b"\1" if predicted is None else map(int, predicted))
            self._pack()

    def end_document(self):
        if self.documents[-1] != self.tokens:
            self.documents.append(self.tokens)

    def _pack(self):
        digits = self.flags.translate(bytes([48, 49]) + bytes(254))
        whole = len(digits) - len(digits) % 8
        self.mask += bytes(int(digits[i : i + 8][::-1], 2) for i in range(0, whole, 8))
        del self.flags[:whole]

    def finish(self):
        """Gives the file its name. Returns its bytes."""
        if len(self.documents) == 1:
            raise Fault("the inputs hold no document")
        token_bytes = array.array(self.type_code).itemsize
        sections = [(self.HEADER_BYTES, self.tokens * token_bytes)]

        def add(data):
            end = sum(sections[-1])
            begin = -(-end // self.ALIGNMENT) * self.ALIGNMENT
            self.file.write(bytes(begin - end))
            self.file.write(data)
            sections.append((begin, len(data)))

        add(little_endian(self.documents))
        if self.masked > 0:
            self.flags += bytes(-len(self.flags) % 8)
            self._pack()
            add(self.mask)
        file_bytes = sum(sections[-1])
        sections += [(0, 0)] * (3 - len(sections))
        self.file.seek(0)
        self.file.write(
            struct.pack(
                "<8s4I4Q6Q24x",
                b"RPTOKENS",
                1,
                self.HEADER_BYTES,
                token_bytes,
                0,
                self.vocabulary,
                self.tokens,
                len(self.documents) - 1,
                file_bytes,
                *(number for section in sections for number in section),
            )
        )
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        os.replace(self.partial, self.path)
        return file_bytes

    def drop(self):
        """Removes what was written, unless it is finished."""
        self.file.close()
        if os.path.exists(self.partial):
            os.remove(self.partial)


def little_endian(numbers):
    if sys.byteorder == "big":
        numbers = array.array(numbers.typecode, numbers)
        numbers.byteswap()
    return numbers.tobytes()


# --- The tokenizer --------------------------------------------------------------------------------

TRAINED_END = "<|endoftext|>"
TRAINED_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def read_text(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise Fault(f"'{path}' is no text in UTF-8: byte {error.start}") from None


def read_json(path):
    try:
        value = json.loads(read_text(path))
    except ValueError as error:
        raise Fault(f"'{path}' is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Fault(f"'{path}' holds no JSON object")
    return value


class ModelTokenizer:
    """A folder's tokenizer.json, with what tokenizer_config.json says of special tokens and chats."""

    def __init__(self, path, chat_template):
        tokenizers = import_or_fail("tokenizers", "tokenizing")
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        file = os.path.join(path, "tokenizer.json") if os.path.isdir(path) else path
        if not os.path.exists(file):
            raise Fault(f"there is no '{file}'")
        try:
            self.tokenizer = tokenizers.Tokenizer.from_file(file)
        except Exception as error:
            raise Fault(f"'{file}' cannot be read: {error}") from None
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        config_file = os.path.join(folder, "tokenizer_config.json")
        self.config = read_json(config_file) if os.path.exists(config_file) else {}
        self.vocabulary = max(self.tokenizer.get_vocab(with_added_tokens=True).values()) + 1
        self.template = self._find_template(folder, chat_template)

    def _find_template(self, folder, chat_template):
        file = os.path.join(folder, "chat_template.jinja")
        if chat_template is not None or os.path.exists(file):
            return read_text(chat_template or file)
        template = self.config.get("chat_template")
        if isinstance(template, list):  # several, by name
            named = {one.get("name"): one.get("template") for one in template}
            template = named.get("default")
        return template

    def special_tokens(self):
        """bos_token, eos_token and so on, by name."""
        tokens = {}
        for name, value in self.config.items():
            if name.endswith("_token"):
                value = value.get("content") if isinstance(value, dict) else value
                if isinstance(value, str):
                    tokens[name] = value
        return tokens

    def end_id(self, name):
        """The id of the end token: `name`, or the tokenizer's own."""
        name = name or self.special_tokens().get("eos_token")
        if name is None:
            raise Fault("the tokenizer names no end token: use --end-token, or --no-end-token")
        number = self.tokenizer.token_to_id(name)
        if number is None:
            raise Fault(f"the tokenizer has no token '{name}'")
        return number


def train_tokenizer(folder, size, texts):
    """Trains a byte-level BPE and writes it to `folder`."""
    tokenizers = import_or_fail("tokenizers", "tokenizing")
    specials = [TRAINED_END, "<|im_start|>", "<|im_end|>"]
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    if size < len(alphabet) + len(specials):
        raise Fault(f"--train-tokenizer {size} is less than {len(alphabet) + len(specials)}")
    if os.path.exists(os.path.join(folder, "tokenizer.json")):
        raise Fault(f"'{folder}' has a tokenizer; leave out --train-tokenizer to use it")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    os.makedirs(folder, exist_ok=True)
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": TRAINED_END,
        "pad_token": TRAINED_END,
        "chat_template": TRAINED_TEMPLATE,
    }
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
        file.write("\n")


# --- Conversations --------------------------------------------------------------------------------


class ChatTemplate:
    """A chat template, run as transformers runs it."""

    def __init__(self, source, special_tokens):
        import_or_fail("jinja2", "a conversation (`messages`)")
        import jinja2.ext
        import jinja2.nodes
        import jinja2.sandbox

        mark = uuid.uuid4().hex
        self.begin, self.end = f"<{mark}>", f"</{mark}>"
        begin, end = self.begin, self.end

        class Generation(jinja2.ext.Extension):
            """{% generation %}...{% endgeneration %}: what the assistant says."""

            tags = {"generation"}

            def parse(self, parser):
                line = next(parser.stream).lineno
                body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
                call = self.call_method("_mark")
                return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

            def _mark(self, caller):
                return begin + caller() + end

        def raise_exception(message):
            raise jinja2.exceptions.TemplateError(message)

        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[Generation, jinja2.ext.loopcontrols],
        )
        environment.filters["tojson"] = lambda value, indent=None, **_: json.dumps(
            value, ensure_ascii=False, indent=indent
        )
        environment.globals["raise_exception"] = raise_exception
        environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
        try:
            self.template = environment.from_string(source)
        except jinja2.exceptions.TemplateError as error:
            raise Fault(f"the chat template is wrong: {error}") from None
        self.special_tokens = special_tokens

    def _write(self, messages, tools, generation=False):
        return self.template.render(
            messages=messages,
            tools=tools,
            documents=None,
            add_generation_prompt=generation,
            **self.special_tokens,
        )

    def render(self, messages, tools):
        """The text of a conversation, and the spans of it that the assistant says."""
        try:
            marked = self._write(messages, tools)
            if self.begin in marked:
                return self._take_marks(marked)
            return marked, self._find_turns(marked, messages, tools)
        except Fault:
            raise
        except Exception as error:  # whatever a template does
            raise Fault(f"the chat template says: {error}") from None

    def _take_marks(self, marked):
        text, spans = "", []
        for part in marked.split(self.begin):
            said, end, after = part.rpartition(self.end)
            if end:
                spans.append((len(text), len(text) + len(said)))
            text += said + after
        return text, spans

    def _find_turns(self, text, messages, tools):
        """A turn begins where the template would ask for it. Templates may write a turn otherwise
        once others follow, for example without its thoughts, so its end is found from behind: with
        a mark as its content, what follows the mark is what follows the turn in the whole text."""
        mark = uuid.uuid4().hex
        spans = []
        for i, message in enumerate(messages):
            if message.get("role") != "assistant":
                continue
            before = self._write(messages[:i], tools, generation=True)
            turn = messages[:i] + [dict(message, content=mark)]
            rest = self._write(turn + messages[i + 1 :], tools).rpartition(mark)
            tail = self._write(turn, tools).rpartition(mark)
            end = len(text) - len(rest[2]) + len(tail[2])
            if not (
                rest[1]
                and tail[1]
                and text.startswith(before)
                and text.endswith(rest[2])
                and rest[2].startswith(tail[2])
                and len(before) <= end
            ):
                raise Fault(
                    f"message {i}: the chat template changes earlier text as the conversation goes "
                    "on, so the assistant's part cannot be told; give one with {% generation %} "
                    "blocks as --chat-template"
                )
            if tail[2].strip():  # white space behind the token that ends the turn is not said
                end -= len(tail[2]) - len(tail[2].rstrip())
            spans.append((len(before), end))
        return spans


def check_messages(messages):
    if not isinstance(messages, list) or not messages:
        raise Fault("'messages' is no array of messages")
    for i, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise Fault(f"message {i} has no 'role'")
        if "content" not in message and "tool_calls" not in message:
            raise Fault(f"message {i} has no 'content'")
    if all(message["role"] != "assistant" for message in messages):
        raise Fault("no message is the assistant's: there is nothing to predict")


# --- Documents ------------------------------------------------------------------------------------


class Document:
    """A text to encode; `spans` are the parts to predict, None for all."""

    def __init__(self, text, spans=None, goes_on=False, continues=False):
        self.text = text
        self.spans = spans
        self.goes_on = goes_on  # in the next one
        self.continues = continues  # the one before


def parts_of(text, size=1 << 22):
    """Cuts a long text into parts of about `size` characters, each at the end of a line behind
    which a word begins: tokens hardly ever reach across such a place."""
    begin = 0
    while len(text) - begin > 2 * size:
        end = begin + size
        while end < len(text) and not (text[end - 1] == "\n" and not text[end].isspace()):
            end += 1
        yield text[begin:end]
        begin = end
    if begin < len(text):
        yield text[begin:]


def documents_of_text(text):
    parts = list(parts_of(text))
    for i, part in enumerate(parts):
        yield Document(part, goes_on=i + 1 < len(parts), continues=i > 0)


def documents_of_line(line, template):
    try:
        value = json.loads(line)
    except ValueError as error:
        raise Fault(f"is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Fault("is no JSON object")
    if "messages" in value:
        check_messages(value["messages"])
        yield Document(*template().render(value["messages"], value.get("tools")))
    elif isinstance(value.get("text"), str):
        yield from documents_of_text(value["text"])
    else:
        raise Fault("has neither 'text', a string, nor 'messages'")


def documents_of(paths, form, template):
    """The documents of all files. `template()` gives the chat template."""
    for path in paths:
        lines = form == "jsonl" or (
            form == "auto" and path.lower().endswith((".jsonl", ".ndjson", ".json"))
        )
        if not lines:
            yield from documents_of_text(read_text(path))
            continue
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        yield from documents_of_line(line, template)
                    except Fault as fault:
                        raise Fault(f"'{path}' line {number}: {fault}") from None


def is_predicted(offsets, spans):
    """Whether a token, of the characters `offsets`, reaches into one of the spans. So transformers
    masks, too: a token of the last line break before an answer and its first blanks counts."""
    begin, end = offsets
    return any(begin < last and end > first for first, last in spans)


def encode_all(documents, model, end, writer):
    """Encodes batches of documents on all processors, and writes them in order. `end()` gives the
    end token of texts."""
    batch, characters = [], 0

    def flush():
        for special in (True, False):  # conversations have their special tokens in their text
            some = [d for d in batch if (d.spans is None and not d.continues) == special]
            codes = model.tokenizer.encode_batch(
                [d.text for d in some], add_special_tokens=special
            )
            for document, code in zip(some, codes):
                document.code = code
        for document in batch:
            ids = document.code.ids
            if document.spans is not None:
                predicted = [is_predicted(o, document.spans) for o in document.code.offsets]
                if not any(predicted):
                    raise Fault("a conversation has no token of the assistant's")
                writer.append(ids, predicted)
            else:
                if not document.goes_on and end() is not None and ids[-1:] != [end()]:
                    ids = ids + [end()]
                writer.append(ids)
            if not document.goes_on:
                writer.end_document()
        batch.clear()

    for document in documents:
        batch.append(document)
        characters += len(document.text)
        if len(batch) >= 1000 or characters >= 1 << 23:
            flush()
            characters = 0
    flush()


# --- The program ----------------------------------------------------------------------------------


def parse_options(arguments):
    parser = argparse.ArgumentParser(
        prog="tokenize_data.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("inputs", nargs="+", metavar="FILE", help="text files and files of JSON lines")
    add("--tokenizer", required=True, metavar="PATH", help="a model's folder, or a tokenizer.json")
    add("--output", required=True, metavar="FILE", help="the file of tokens to write")
    add("--train-tokenizer", type=int, metavar="SIZE", help="train a byte-level BPE of SIZE tokens")
    add(
        "--format",
        choices=["auto", "text", "jsonl"],
        default="auto",
        help="of the inputs; auto: by their names (default)",
    )
    add("--chat-template", metavar="FILE", help="a Jinja template in place of the model's own")
    add("--end-token", metavar="TOKEN", help="ends each text (default: the tokenizer's eos_token)")
    add("--no-end-token", action="store_true", help="end texts with no token")
    return parser.parse_args(arguments)


def run(options):
    if options.train_tokenizer is not None:

        def trained_template():
            return ChatTemplate(TRAINED_TEMPLATE, {})

        documents = documents_of(options.inputs, options.format, trained_template)
        texts = (document.text for document in documents)
        train_tokenizer(options.tokenizer, options.train_tokenizer, texts)
    model = ModelTokenizer(options.tokenizer, options.chat_template)
    templates = []

    def template():
        if not templates:
            if model.template is None:
                raise Fault("the tokenizer has no chat template: use --chat-template")
            templates.append(ChatTemplate(model.template, model.special_tokens()))
        return templates[0]

    ends = []

    def end():
        if not ends:
            ends.append(None if options.no_end_token else model.end_id(options.end_token))
        return ends[0]

    writer = TokenFileWriter(options.output, model.vocabulary)
    try:
        documents = documents_of(options.inputs, options.format, template)
        encode_all(documents, model, end, writer)
        file_bytes = writer.finish()
    finally:
        writer.drop()
    print(
        f"{options.output}: {len(writer.documents) - 1} documents, {writer.tokens} tokens "
        f"({writer.masked} masked), vocabulary {model.vocabulary}, {file_bytes} bytes"
    )


def main(arguments):
    try:
        run(parse_options(arguments))
        return 0
    except Fault as fault:
        print(f"tokenize_data.py: {fault}", file=sys.stderr)
    except OSError as error:
        print(f"tokenize_data.py: {error.strerror}: '{error.filename}'", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
