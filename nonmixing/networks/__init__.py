"""Networks that really are trained, and the tasks that they are trained on.

Nothing is imported here: `nonmixing.networks.train` loads torch when it is called, and
`nonmixing.networks.tasks` loads scikit-learn when a task is asked for.
"""
