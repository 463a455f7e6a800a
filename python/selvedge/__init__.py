"""Selvedge in Python: do I need a lossless fabric?

```python
import selvedge as sv

study = sv.Study(
    topology=sv.FatTree(k=4, link=sv.Link("40Gbps", "2us")),
    workload=sv.Poisson(load=0.7, sizes="irn-heavy-tailed"),
    series=["irn", "roce+pfc"],
    stop=sv.Stop(flows=1_000),
)
result = study.run(progress=True)
result.compare("roce+pfc", "irn", "fct_p99")
```
"""

from . import _native
from ._errors import ScenarioError, SelvedgeError, StudyError
from ._generated import *  # noqa: F403
from ._generated import __all__ as _parts
from ._result import Comparison, Result, Table, load_results
from ._session import Flow, Session
from ._study import Study, check, key_help, load, resume
from ._sweep import sweep
from ._tune import Goal, Trial, Tuning, tune

__version__ = _native.VERSION

__all__ = [  # noqa: PLE0604
    "Comparison",
    "Flow",
    "Goal",
    "Result",
    "ScenarioError",
    "SelvedgeError",
    "Session",
    "Study",
    "StudyError",
    "Table",
    "Trial",
    "Tuning",
    "__version__",
    "check",
    "key_help",
    "load",
    "load_results",
    "resume",
    "sweep",
    "tune",
    *_parts,
]
