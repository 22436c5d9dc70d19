"""What probe.py and probe_2.py have in common: facts about PyTorch, each with a test, and a line for each of them."""

import sys
import warnings

import torch

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.manual_seed(1)
torch.set_grad_enabled(False)
_facts = []


def fact(text):
    def register(test):
        _facts.append((text, test))
        return test

    return register


def raises(call):
    try:
        call()
    except (RuntimeError, TypeError):
        return True
    return False


def tell():
    """Prints each fact, and ends the program: with 1 where one does not hold."""
    failed = 0
    for text, test in _facts:
        holds = bool(test())
        failed += not holds
        print("yes" if holds else "NO ", text)
    print(f"PyTorch {torch.__version__}: {len(_facts) - failed} of {len(_facts)} facts hold")
    sys.exit(1 if failed else 0)
