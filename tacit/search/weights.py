"""Every number that decides ranking, in one table.

Settings come first; the config can change them. All other numbers are fixed. "Measured" names the page with
the figures; they come from `tacit eval` on the development splits of LoCoMo and BEAM, on which the numbers
were chosen too. "Chosen by hand" means that there are no figures for that number alone.

Two kinds of number are kept elsewhere: the constants of relevance, which are fitted for each embedder
(calibrations.json), and the length of a chunk (tacit.markdown.chunker).
"""

from __future__ import annotations

from tacit.config.schema import InjectSettings, SearchSettings

# ---------------------------------------------------------------- settings

_SEARCH, _INJECT = SearchSettings(), InjectSettings()

# Weights of the two channels in the fused score. The embedder's `trust` (calibrations.json) multiplies the
# second one. Measured together with it: docs/search.md, Quality.
LEXICAL_WEIGHT = _SEARCH.bm25_weight
VECTOR_WEIGHT = _SEARCH.vector_weight

# Share of a hit's relevance that a note linked with it gets. Chosen on the linked questions of
# decisions/0012; it changes nothing on LoCoMo and BEAM, which have no links.
LINK_SHARE = _SEARCH.spreading

# Relevance that at most one in ten questions without an answer reaches; relevance that more than a third of
# the questions from another home stay below. Calibration makes both mean the same for every embedder.
STRONG_RELEVANCE = _INJECT.strong
GATE_RELEVANCE = _INJECT.confidence_gate

# ---------------------------------------------------------------- chunks

# Consecutive short sections share a chunk up to this length. Chosen by hand.
MAX_MERGED_CHARS = 500

# A heading may lengthen the chunk below it by this: alone it says nothing. Chosen by hand.
EXTRA_HEADING_CHARS = 300

# Words of the neighbours are indexed with a chunk if all of them together are at most this long. Recall of
# the first ten rises from 62 to 76 on short turns; without the limit long ones lose 7 (decisions/0006).
MAX_NEIGHBOURHOOD_CHARS = 1500
NOTE_NEIGHBOURS = 1  # on each side; chosen by hand
TURN_NEIGHBOURS = 2  # on each side; measured together with the limit

# ---------------------------------------------------------------- words

# BM25 weights of the four columns: body, before, after, heading. Neighbours raise recall (see above); their
# weights were chosen by hand.
COLUMN_WEIGHTS = (1.0, 0.4, 0.2, 0.6)

# BM25 of a chunk that repeats a term without end, as a multiple of the term's rarity: 1 + k1, as FTS5 sets
# k1.
BM25_CEILING = 2.2

# A term in a larger share of chunks says little and costs most of the time. Chosen by hand.
MAX_TERM_FREQUENCY = 0.25

# ---------------------------------------------------------------- vectors

# Share of chunks at which a word of the question counts half in its vector, for embedders that add up words.
# Weighting by rarity takes vectors alone from 41 to 61 on LoCoMo (decisions/0006).
COMMON_WORD_FREQUENCY = 0.2

# SQLite only: chunks whose vectors are compared in full after the scan of signs, and the fraction of a large
# index instead, since more chunks have signs as good as the best. `python -m bench vectors` measures the
# loss.
MIN_RESCORED = 800
RESCORED_DIVISOR = 32

# ---------------------------------------------------------------- fusion

# Candidates from each channel, whose scores are standardized. On LoCoMo with e5-small: the best hundred give
# 79.9, all chunks 79.6; on BEAM 52.3 and 51.2 (decisions/0006).
CANDIDATES_PER_CHANNEL = 100

# Boosts, in standard deviations: a chunk from a day that the question names; the file of a person or project
# that it names. Both chosen by hand.
DAY_BOOST = 0.5
NAME_BOOST = 0.3

# For each note that links to a note, at most three: a tie-break. With 0.1 the sample home's R@5 fell from
# 80.0 to 78.9 (decisions/0012).
REFERENCE_BOOST = 0.05
MAX_REFERENCES = 3

# ---------------------------------------------------------------- cross-encoder

# How many of the best it reads; with fewer than the minimum the order is left as it is; its share against the
# fused score. All three chosen by hand. Reading each chunk alone and among its neighbours was measured: +5.5,
# against +3 for either reading (decisions/0006).
MAX_RERANKED = 50
MIN_RERANKED = 5
RERANK_SHARE = 0.8

# ---------------------------------------------------------------- repeated questions (decisions/0010)

# Repeated questions are only looked for among this many of the best. Chosen by hand.
MAX_CHECKED_FOR_REPEATS = 5

# If most candidates are repeated questions, that many times more are fetched. Chosen by hand.
REPEATS_DEPTH_FACTOR = 4

# The newest ones become hits, since they lead to earlier answers: one, or three if many hits are asked for.
# Chosen by hand.
MAX_REPEATS = 3
MIN_HITS_FOR_MORE_REPEATS = 30

# What counts as the same question: this share of the words of each is in the other; a text with further
# questions is at most that many times as long. Measured only for harm: none of 600 questions of LoCoMo and
# BEAM repeats another one.
MIN_SAME_WORDS = 0.8
MAX_SAME_QUESTION_FACTOR = 4

# ---------------------------------------------------------------- link expansion (decisions/0012)

# The first hits whose links are followed, if they are no further below the best than this. Chosen by hand.
MAX_SEEDS = 3
MAX_SEED_DISTANCE = 1.0

# Linked notes that become hits, and chunks of each among which the best is taken. Chosen by hand.
MAX_EXPANDED = 3
MAX_CHUNKS_PER_NOTE = 40

# ---------------------------------------------------------------- chunks for a prompt
# In units of the rank score: standard deviations above the candidates of the question. "With the evidence":
# the share of the evidence that prompts contain was measured with all of these together (docs/context.md, How
# good it is).

# The turn after a question that was found gets this share of the question's rank score, up to a maximum. Only
# for pairs that are short together: longer turns rank by their own words. Chosen with the evidence.
ANSWER_SHARE = 0.6
MAX_ANSWER_LIFT = 4.0
MAX_PAIR_CHARS = 600

# What was answered to the same question before ranks at most this far below the best (decisions/0010).
EARLIER_ANSWER_PENALTY = 2.0

# For words of the person whom the question names, or means by "I" and "you". Chosen with the evidence.
SPEAKER_BONUS = 0.6

# Share of the best rank score in the same file. Chosen with the evidence.
FILE_SHARE = 0.3

# At most this much for a recent chunk, so that recency decides among near equals only (decisions/0007).
RECENCY_BONUS = 0.1

# Half-lives as multiples of the journal's (`half_life_days`); other categories never grow old. Chosen by
# hand.
HALF_LIFE_FACTORS = {"journal": 1.0, "conversation": 4.0, "project": 8.0}

# Subtracted from personal notes when the question is technical. Chosen by hand.
TECHNICAL_PENALTY = 1.0

# Share of common words from which two chunks count as duplicates. Chosen by hand.
MIN_DUPLICATE_OVERLAP = 0.9

# Chunks no further than this below the best come first; a turn that names no budget takes only these. Chosen
# with the evidence in default turns.
NEAR_BEST_MARGIN = 4.0

# Value that a chunk must have in addition for each e-fold of its tokens. Chosen with the evidence at 512 to
# 2,048 tokens.
COST_PENALTY = 0.3

# Share of the gate that a chunk must reach beside a better one, if the turn names no budget (decisions/0007).
SECONDARY_GATE_SHARE = 1 / 3
