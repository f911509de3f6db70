"""Ctrl-C, other signals, fork() and calls from on_text, in programs that use the Python module."""
import multiprocessing
import os
import signal
import sys
import threading
import time

import dtrun

PROMPT = "It was a dark night"
LONG = {"policy": "ar", "tokens": -1, "ignore_eos": True, "temp": 1}  # some seconds


def later(number, seconds=0.1):
    timer = threading.Timer(seconds, os.kill, [os.getpid(), number])
    timer.start()
    return timer


def raises(kind, function, *args, **options):
    try:
        function(*args, **options)
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}")


def of_the_pair(function):
    return str(raises(dtrun.Error, function))


lost = []
sys.unraisablehook = lost.append
pair = dtrun.load()

# Ctrl-C ends the call, repeatedly, with one text or many
def ends_by_ctrl_c(call):
    raises(KeyboardInterrupt, call)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()  # it has sent the signal, but need not have ended
    assert threading.active_count() == 1


# with a listener, Ctrl-C comes after the listener has been called, however busy the machine is
def listen(text):
    if not pieces:
        later(signal.SIGINT)
    pieces.append(text)


for _ in range(3):
    for call in (lambda: pair.generate(PROMPT, **LONG),
                 lambda: pair.generate_batch([PROMPT] * 40, **LONG),
                 lambda: [None for _ in pair.stream(PROMPT, **LONG)]):
        later(signal.SIGINT)
        ends_by_ctrl_c(call)
    pieces = []
    ends_by_ctrl_c(lambda: pair.generate(PROMPT, on_text=listen, **LONG))
    assert pieces

# within on_text it is raised at that place; if it is caught there, the text goes on
def patient(text):
    try:
        signal.raise_signal(signal.SIGINT)
        time.sleep(10)
    except KeyboardInterrupt:
        seen.append(text)


seen = []
assert len(pair.generate(PROMPT, policy="ar", tokens=5, on_text=patient)["tokens"]) == 5 and len(seen) == 5
raises(KeyboardInterrupt, pair.generate, PROMPT, on_text=lambda _: signal.raise_signal(signal.SIGINT), **LONG)

# two at once count as one; other handlers end the call with their exception, if they raise one
both = later(signal.SIGINT), later(signal.SIGINT)
raises(KeyboardInterrupt, pair.generate, PROMPT, **LONG)
for timer in both: # on a busy machine the second comes after the call
    try:
        timer.join()
        time.sleep(0.05)
    except KeyboardInterrupt:
        pass


def expire(*_):
    raise TimeoutError("too long")


signal.signal(signal.SIGALRM, expire)
signal.setitimer(signal.ITIMER_REAL, 0.1)
assert str(raises(TimeoutError, pair.generate, PROMPT, **LONG)) == "too long"
heard = []
handler = lambda *_: heard.append(1)
signal.signal(signal.SIGINT, handler)
later(signal.SIGINT, 0.02)
assert pair.generate(PROMPT, **dict(LONG, tokens=400))["finish_reason"] == "length"
time.sleep(0.1)
assert heard == [1] and signal.getsignal(signal.SIGINT) is handler
signal.signal(signal.SIGINT, signal.default_int_handler)

# another thread's call goes on
worker = threading.Thread(target=lambda: seen.append(pair.generate(PROMPT, **dict(LONG, tokens=600))))
worker.start()
later(signal.SIGINT, 0.02)
raises(KeyboardInterrupt, time.sleep, 5)
worker.join()
assert len(seen.pop()["tokens"]) == 600
assert not lost, lost

# a call from on_text is refused, and the text goes on; in the loop over a stream it waits
answers = []
for ask in (lambda: pair.encode("x"), lambda: pair.generate("x"), pair.close, dtrun.version, dtrun.load):
    pair.generate(PROMPT, policy="ar", tokens=2, on_text=lambda _: answers.append(of_the_pair(ask)))
assert len(answers) == 10 and all("call it after generate has returned, not from on_text" in text for text in answers)
assert [pair.encode("x") for _ in pair.stream(PROMPT, policy="ar", tokens=2)] == [pair.encode("x")] * 2

# in a forked child a message says that it lacks the pair's threads, even in the middle of a call; its own pair works
def child(said, text):
    said.put(of_the_pair(lambda: pair.generate(PROMPT)))
    said.put(dtrun.load(threads=1).generate(PROMPT, policy="ar", tokens=4)["text"] == text)


fork = multiprocessing.get_context("fork")
expected = pair.generate(PROMPT, policy="ar", tokens=4)["text"]
for busy in (False, True):
    said = fork.SimpleQueue()
    process = fork.Process(target=child, args=(said, expected))
    if busy:
        stream = pair.stream(PROMPT, **LONG)
        next(stream)
    process.start()
    process.join(60)
    assert process.exitcode == 0, process.exitcode
    assert "was loaded before fork()" in said.get() and said.get()
    if busy:
        stream.close()
print("ok")
