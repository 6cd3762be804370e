class Stage(
    pass
