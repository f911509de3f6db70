"""The prompts that the bundled head learned from: questions, tasks, sums, code to complete and texts to sum up, about as many of each.

    python make_head_prompts.py SOURCES HELD_OUT.jsonl OUT.jsonl [--each 700]

SOURCES holds clones of
    yizhongw/self-instruct                       instructions (seeds, and those written for its evaluation), news and talk to sum up
    openai/grade-school-math                     GSM8K's training questions
    google-research-datasets/natural-questions   NQ-open's questions
    nuprl/mbpp-type-inf                          MBPP's tasks and tests, written here as functions to complete
    computationalstylistics/100_english_novels   passages of novels before 1929
each as OWNER+NAME/repo, a git directory. Instructions on TOPICS are made here. A prompt that stands in HELD_OUT.jsonl, or begins as one
there does, is left out. They are shuffled, so that any first part is such a mixture too.
"""
import argparse, json, random, re, subprocess

LONGEST = 2400  # characters
TOPICS = """climate change;renewable energy;the water cycle;photosynthesis;black holes;the solar system;volcanoes;earthquakes;the human heart;
vaccines;antibiotics;DNA;evolution;dinosaurs;whales;honeybees;elephants;rainforests;coral reefs;the Great Wall of China;the Roman Empire;
the French Revolution;the Second World War;the Industrial Revolution;ancient Egypt;the Silk Road;the moon landing;democracy;human rights;
inflation;the stock market;supply and demand;personal budgets;taxes;marketing;a small bakery;a coffee shop;a start-up company;remote work;
job interviews;public speaking;time management;teamwork;leadership;customer service;negotiation;email etiquette;social media;smartphones;
the internet;computers;artificial intelligence;machine learning;neural networks;databases;operating systems;computer networks;encryption;
cybersecurity;cloud computing;the Python language;recursion;sorting algorithms;linked lists;binary search;web design;video games;robots;
self-driving cars;electric cars;bicycles;trains;aeroplanes;ships;bridges;skyscrapers;architecture;painting;sculpture;photography;jazz;
classical music;the guitar;the piano;dancing;theatre;cinema;poetry;novels;fairy tales;detective stories;science fiction;Shakespeare;
Greek mythology;philosophy;ethics;psychology;memory;sleep;dreams;stress;meditation;yoga;running;swimming;football;basketball;chess;
healthy eating;vegetarian food;Italian cooking;bread;chocolate;tea;coffee;gardening;houseplants;dogs;cats;birds;horses;fishing;camping;
hiking;travelling on a budget;Paris;Japan;Brazil;Australia;Kenya;India;Mexico;Norway;mountains;the ocean;rivers;deserts;the weather;winter;
summer holidays;birthdays;weddings;friendship;family;parenting;childhood;school;university;learning a language;reading;writing;mathematics;
geometry;probability;statistics;prime numbers;fractions;physics;gravity;electricity;magnetism;light;sound;chemistry;water;gold;plastic;
recycling;pollution;farming;forests;cities;public transport;hospitals;nurses;teachers;fire fighters;libraries;museums;money;happiness""".replace("\n", "").split(";")
TASKS = """What is {}?|Explain {} to a child.|Explain the main ideas behind {} in simple terms.|Write a short story about {}.|Write a poem about {}.|
Give five tips about {}.|List the advantages and disadvantages of {}.|Write a paragraph about {}.|Describe {} in three sentences.|
Write a blog post about {}.|Write an email to a friend about {}.|Write a persuasive essay on {}.|Why does {} matter?|
What are some common misconceptions about {}?|Give me ten interesting facts about {}.|Write a dialogue between two people who discuss {}.|
Come up with three questions for a quiz on {} and answer them.|Brainstorm five ideas for a project on {}.|What is the history of {}?|
How has {} changed in the last hundred years?|Write an outline of a talk on {}.|Write a headline and a first paragraph for a news article on {}.|
Imagine you are an expert on {}. What would you tell a beginner?|Compare {} with {}.|How is {} related to {}?|Write a haiku about {}.|
Create a slogan about {}.|Suggest a title for a book about {} and describe its plot.|What should a visitor know about {}?|
Write a letter to the editor about {}.|Name three famous people connected with {} and say why.|Make a list of words that have to do with {}.|
Write a product review of something to do with {}.|Design a lesson plan on {}.|Describe a day in the life of somebody who works with {}.|
What would the world be like without {}?|How can I learn more about {}?|Summarize what you know of {} in two sentences.""".replace("\n", "").split("|")


def shown(sources, repository, path):
    return subprocess.run(["git", "-C", f"{sources}/{repository.replace('/', '+')}/repo", "show", "HEAD:" + path],
                          check=True, capture_output=True, text=True).stdout


def lines(sources, repository, path):
    return [json.loads(l) for l in shown(sources, repository, path).splitlines()]


def paths(sources, repository, under):
    return subprocess.run(["git", "-C", f"{sources}/{repository.replace('/', '+')}/repo", "ls-tree", "-r", "--name-only", "HEAD", under],
                          check=True, capture_output=True, text=True).stdout.splitlines()


def instructions(sources):
    for path in "data/seed_tasks.jsonl", "human_eval/user_oriented_instructions.jsonl":
        for task in lines(sources, "yizhongw/self-instruct", path):
            given = task["instances"][0]["input"]
            yield task["instruction"] + ("\n\n" + given if given else "")


def on_topics(rng, n):
    for _ in range(n):
        task = rng.choice(TASKS)
        yield task.format(*rng.sample(TOPICS, task.count("{}")))


def texts_to_sum_up(sources, rng):
    """News and talk in the first words that others chose, or in those of our benchmark."""
    folder = "data/finetuning/t0_train_50k/data_per_template/"
    for path in paths(sources, "yizhongw/self-instruct", folder):
        if re.search(r"cnn_dailymail.*(brief|summary|sentences)|multi_news_(summarize|distill|what)|xsum_(summarize|article|read)|samsum_Sum", path):
            for line in lines(sources, "yizhongw/self-instruct", path):
                text = line["prompt"].strip()
                body = max(text.split("\n\n"), key=len)
                yield "Summarize: " + body if rng.random() < 0.6 else text


def passages(sources, rng, n):
    names = [p for p in paths(sources, "computationalstylistics/100_english_novels", "corpus") if int(re.search(r"(\d{4})\.txt", p)[1]) < 1929]
    for name in rng.sample(names, min(len(names), 40)):
        text = re.sub(r"\s+", " ", shown(sources, "computationalstylistics/100_english_novels", name))
        for _ in range(n // 40):
            start = text.index(". ", rng.randrange(len(text) - 3000)) + 2
            passage = text[start:text.index(". ", start + rng.randrange(300, 1500)) + 1]
            yield rng.choice(["Summarize: {}", "Continue this story: {}", "Who appears in this passage, and what happens? {}",
                              "Rewrite this passage in modern English: {}", "Describe the mood of this passage: {}"]).format(passage)


def code(sources):
    for task in json.loads(shown(sources, "nuprl/mbpp-type-inf", "datasets/sanitized-mbpp.json")):
        yield task["prompt"]
        heads = re.findall(r"^def \w+\(.*$", task["code"], re.M)
        if heads:
            tests = "".join(f"    >>> {t[7:]}\n" for t in task["test_list"][:2] if t.startswith("assert "))
            yield f'Complete the code I provided.\n\n{heads[-1]}\n    """{task["prompt"]}\n{tests}    """\n'


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("sources"), ap.add_argument("held_out"), ap.add_argument("out"), ap.add_argument("--each", type=int, default=700)
    o = ap.parse_args()
    rng = random.Random(1)
    plain = lambda s: re.sub(r"\W+", " ", s.lower()).strip()[:120]
    held = {plain(json.loads(l)["prompt"]) for l in open(o.held_out, encoding="utf-8")}
    kinds = {"instruction": instructions(o.sources), "topic": on_topics(rng, 3 * o.each), "sum": texts_to_sum_up(o.sources, rng),
             "passage": passages(o.sources, rng, o.each // 2), "code": code(o.sources),
             "arithmetic": (q["question"] for q in lines(o.sources, "openai/grade-school-math", "grade_school_math/data/train.jsonl")),
             "question": (q["question"].capitalize() + "?" for q in lines(o.sources, "google-research-datasets/natural-questions", "nq_open/NQ-open.dev.jsonl"))}
    all, seen = [], set()
    for kind, prompts in kinds.items():
        new = [p for p in prompts if len(p) <= LONGEST and not (plain(p) in held or plain(p) in seen or seen.add(plain(p)))]
        most = {"topic": 2, "passage": 0.5}.get(kind, 1) * o.each
        new = rng.sample(new, min(len(new), int(most)))
        print(f"{kind}: {len(new)}")
        all += new
    rng.shuffle(all)
    with open(o.out, "w", encoding="utf-8") as f:
        for p in all: f.write(json.dumps({"prompt": p}, ensure_ascii=False) + "\n")


if __name__ == "__main__": main()
