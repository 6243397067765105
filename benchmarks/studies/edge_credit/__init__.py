"""Study of split facts: do edges learn faster from the credit of messages than from the outcome?"""
